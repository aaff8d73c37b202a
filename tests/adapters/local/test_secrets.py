"""What looks like a secret is masked, and what does not stays readable."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.local.secrets import (
    MASK,
    mask_text,
    mask_tree,
    mask_value,
    name_is_secret,
    value_is_secret,
)

ALNUM = string.ascii_letters + string.digits


def of(alphabet: str, least: int, most: int = 40) -> st.SearchStrategy[str]:
    return st.text(alphabet=alphabet, min_size=least, max_size=most)


SECRETS = st.one_of(
    of(ALNUM, 20).map("hf_{}".format),
    of(ALNUM + "-_", 20).map("sk-{}".format),
    of(ALNUM + "-_", 20).map("sk-proj-{}".format),
    of(string.ascii_uppercase + string.digits, 16, 16).map("AKIA{}".format),
    of(ALNUM + "/+", 37, 37).map("aB3{}".format),
    of(ALNUM, 36, 36).map("ghp_{}".format),
    of(ALNUM + "-_", 20).map("glpat-{}".format),
    of(ALNUM + "-", 20).map("xoxb-{}".format),
    st.tuples(of(ALNUM + "-_", 8), of(ALNUM + "-_", 8), of(ALNUM + "-_", 8)).map(
        lambda parts: "eyJ" + ".".join(parts)
    ),
    st.tuples(of(ALNUM, 1, 10), of(ALNUM + "!$/:#?@", 8, 20)).map(
        lambda parts: f"postgres://{parts[0]}:{parts[1]}@db.example/x"
    ),
    of(ALNUM, 20).map("https://{}@git.example/x.git".format),
    of(ALNUM + "+/\n", 40, 80).map(
        lambda body: f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    ),
    of(ALNUM, 12).map("Bearer {}".format),
    of(ALNUM, 8).map("--api-key {}".format),
    of(ALNUM, 8).map('{{"password": "{}"}}'.format),
)


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "VLLM_API_KEY",
        "MLFLOW_TRACKING_PASSWORD",
        "MLFLOW_TRACKING_TOKEN",
        "CUDA_CLIENT_SECRET",
        "RAY_AUTH_MODE",
        "ORCHESTRATOR_CREDENTIALS",
        "hfToken",
        "AUTHORIZATION",
        "VLLM_TOKENIZER_TOKEN",
        "AUTHOR_AUTH",
    ],
)
def test_a_name_that_says_secret_masks_any_value(name: str) -> None:
    assert name_is_secret(name)
    assert mask_value(name, "harmless") == MASK
    assert mask_value(name, "x") == MASK


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("VLLM_MAX_TOKENS", "512"),
        ("ORCHESTRATOR_AUTHOR", "somebody"),
        ("OMP_NUM_THREADS", "2"),
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("HF_HOME", "/data/hf_cache/models"),
        ("VLLM_ATTENTION_BACKEND", "FLASH_ATTN"),
        ("RAY_ADDRESS", "ray://127.0.0.1:10001"),
        ("MLFLOW_TRACKING_URI", "sqlite:///results/mlflow.db"),
        ("MLFLOW_TRACKING_URI", "http://mlflow.example:5000/path"),
        ("VLLM_COMMIT", "9cc3540e4e1f0c1f6c5d7b8a9e0f1a2b3c4d5e6f"),
        ("HF_ENDPOINT", "https://hub.example"),
    ],
)
def test_what_is_no_secret_stays(name: str, value: str) -> None:
    assert mask_value(name, value) == value


def test_a_token_count_stays_but_a_token_list_does_not() -> None:
    assert mask_value("VLLM_BAD_TOKENS", "12") == "12"
    assert mask_value("VLLM_API_TOKENS", "alpha,beta") == MASK
    assert mask_value("VLLM_TOKEN", "12") == MASK, "a single token may be a number"


@given(SECRETS)
def test_every_shape_is_recognised_under_any_name(secret: str) -> None:
    assert value_is_secret(secret)
    assert mask_value("OMP_HARMLESS", secret) == MASK


@given(SECRETS.filter(lambda secret: not secret.startswith("aB3")))
def test_in_a_log_only_the_secret_goes(secret: str) -> None:
    masked = mask_text(f"starting engine\nusing {secret}")
    assert secret not in masked
    assert masked.startswith("starting engine\nusing ")
    assert MASK in masked


def test_text_without_secrets_is_left_alone() -> None:
    text = "INFO 12:00:01 model loaded in 3.2 s; user@host said hello at http://127.0.0.1:8000/v1"
    assert mask_text(text) == text


@pytest.mark.parametrize(
    ("line", "kept", "gone"),
    [
        ("args: {'api_key': ['one1', 'two2'], 'port': 8000}", "'port': 8000", "two2"),
        ("password = 'three words long'; next", "; next", "words"),
        ("--api-key alpha --port 1", "--port 1", "alpha"),
        ("MLFLOW_TRACKING_PASSWORD=x,y z", " z", "x,y"),
        ("clone https://u:p/w@git.example/r.git done", "git.example/r.git done", "p/w"),
        ("Authorization: Bearer abcdefgh12", "", "abcdefgh12"),
    ],
)
def test_a_log_line_loses_the_value_and_keeps_the_rest(line: str, kept: str, gone: str) -> None:
    masked = mask_text(line)
    assert gone not in masked
    assert kept in masked


@pytest.mark.parametrize(
    "line",
    ["time per output token: 12.5 ms", "first token: 0.3", "tokens: 512, keys=4", "token=7, x"],
)
def test_measurements_of_tokens_are_not_masked(line: str) -> None:
    assert mask_text(line) == line


@given(SECRETS)
def test_no_secret_survives_anywhere_in_a_tree(secret: str) -> None:
    tree = {"a": [{"b": secret}, 1, None, True], "c": {"d": {"e": [secret]}}, "password": "plain"}
    masked = mask_tree(tree)
    text = json.dumps(masked)
    assert json.dumps(secret)[1:-1] not in text
    assert masked["password"] == MASK
    assert masked["a"][1:] == [1, None, True]
