"""References between files."""

from __future__ import annotations

from pathlib import Path

from tests.spec.written import GOOD, faults_of, only_fault, read_text

SERVE = """\
applications:
  - name: baseline
    route_prefix: /baseline
    args: {name: baseline, engine: {dtype: bfloat16, max_model_len: 2048}}
  - name: other
    args: {engine: {dtype: float32}}
  - {name: bare}
"""


def serve_config(folder: Path) -> Path:
    configs = folder / "serve_configs"
    configs.mkdir(exist_ok=True)
    (configs / "baseline.yaml").write_text(SERVE)
    experiments = folder / "experiments"
    experiments.mkdir(exist_ok=True)
    return experiments


def engine(reference: str, more: str = "") -> str:
    return GOOD + f"engine:\n  from: {reference}\n{more}"


def test_the_engine_is_taken_from_the_first_application_and_overridden(tmp_path: Path) -> None:
    folder = serve_config(tmp_path)
    text = engine("../serve_configs/baseline.yaml", "  max_model_len: 1024\n")
    assert read_text(folder, text).engine == {"dtype": "bfloat16", "max_model_len": 1024}


def test_or_from_a_named_one(tmp_path: Path) -> None:
    folder = serve_config(tmp_path)
    text = engine("'../serve_configs/baseline.yaml#other'")
    assert read_text(folder, text).engine == {"dtype": "float32"}


def test_what_is_wrong_with_the_reference(tmp_path: Path) -> None:
    folder = serve_config(tmp_path)

    def rule(reference: str) -> str:
        fault = only_fault(folder, engine(reference))
        assert (fault.key, fault.line) == ("engine.from", 9)
        return fault.rule

    assert rule("../none.yaml") == "the file must exist"
    assert rule("'../serve_configs/baseline.yaml#otter'").startswith(
        "the application must be one of baseline, other, bare"
    )
    assert "args.engine" in rule("'../serve_configs/baseline.yaml#bare'")
    (tmp_path / "serve_configs" / "bad.yaml").write_text("applications: [")
    assert rule("../serve_configs/bad.yaml").startswith("cannot be used: ")
    assert rule("7") == "must be a file, or file#application"


def test_prompts_are_relative_to_the_file_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("{}")
    good = read_text(tmp_path, GOOD.replace("bundled:chat", "./mine.jsonl"))
    assert good.workloads[0].prompts == str(tmp_path / "mine.jsonl")
    fault = only_fault(tmp_path, GOOD.replace("bundled:chat", "yours.jsonl"))
    assert (fault.line, fault.key, fault.value) == (7, "workloads[0].prompts", "'yours.jsonl'")


def test_other_sources_are_left_as_they_are(tmp_path: Path) -> None:
    for prompts in ("bundled:chat", "hf:owner/set", "'random:count=64,tokens=128'"):
        read = read_text(tmp_path, GOOD.replace("bundled:chat", prompts))
        assert read.workloads[0].prompts == prompts.strip("'")


def test_models_that_begin_like_a_path_are_paths(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    text = GOOD.replace("target: tiny", "target: ./model")
    assert read_text(tmp_path, text).target == str(tmp_path / "model")
    drafts = text.replace("method: ngram", "method: eagle, draft: [owner/head, ./head]")
    fault = only_fault(tmp_path, drafts)
    assert fault.key == "sweep.speculation[0].draft[1]"


def test_missing_files_are_found_beside_other_faults(tmp_path: Path) -> None:
    text = GOOD.replace("bundled:chat", "none.csv") + "engine: {from: none.yaml}\nseed: x\n"
    keys = [fault.key for fault in faults_of(tmp_path, text)]
    assert keys == ["workloads[0].prompts", "engine.from", "seed"]
