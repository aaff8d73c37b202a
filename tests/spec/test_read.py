"""Every fault at once, where it stands, in the product's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import SpecError
from orchestrator.spec.read import read_experiment
from orchestrator.spec.workload import BUNDLED
from orchestrator.workloads.bundled import bundled_names
from tests.spec.written import GOOD, faults_of, only_fault, read_text


def with_lines(text: str) -> str:
    return GOOD + text


def test_a_file_with_five_faults_prints_all_five_with_their_lines(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path,
        """\
name: five faults
target: smollm2-135m-instruct
sweep:
  speculation:
    - {method: ngram, speculation_length: [2, 0, 8]}
  batchsize: [1, 4]
workloads:
  - name: chat
    prompts: bundled:chat
    output_tokens: 64
  - name: chat
    prompts: bundled:code
    output_tokens: 64
measure:
  pairs:
    min: 9
    max: 3
""",
    )
    assert [(fault.line, fault.key) for fault in faults] == [
        (1, "name"),
        (5, "sweep.speculation[0].speculation_length[1]"),
        (6, "sweep.batchsize"),
        (11, "workloads[1].name"),
        (16, "measure.pairs.min"),
    ]
    file = tmp_path / "x.yaml"
    assert [str(fault) for fault in faults] == [
        f"{file}:1 name: must be letters, digits, '.', '-' or '_', and begin with a letter or "
        "digit, got 'five faults'",
        f"{file}:5 sweep.speculation[0].speculation_length[1]: must be >= 1, got 0",
        f"{file}:6 sweep.batchsize: is not a known key; did you mean 'batch_size'?",
        f"{file}:11 workloads[1].name: must differ from the other workloads' names, got 'chat'",
        f"{file}:16 measure.pairs.min: pairs.min <= pairs.max must hold, got min=9, max=3",
    ]


def test_a_good_file_reads_with_its_defaults(tmp_path: Path) -> None:
    experiment = read_text(tmp_path, GOOD)
    assert experiment.measure.pairs.max == 24
    assert experiment.sweep.temperature == (0.0,)
    assert experiment.load.mode == "closed"
    assert experiment.requests_per_block == 1
    assert not experiment.simulated


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("seeed: 1\n", "seeed", "seed"),
        ("measure: {confidense: 0.9}\n", "measure.confidense", "confidence"),
        ("placement: {gpu_per_replica: 1}\n", "placement.gpu_per_replica", "gpus_per_replica"),
        ("load: {mode: open, rate: [1]}\n", "load.rate", "rate_rps"),
        ("slo: {ttft_p99: 1}\n", "slo.ttft_p99", "ttft_p99_s"),
        ("slo: {tpot_p95_ms: 80}\n", "slo.tpot_p95_ms", "tpot_p95_s"),
        ("cost: {device-hour: 2}\n", "cost.device-hour", "device_hour"),
        ("scenarios: [offline-bach]\n", "scenarios[0]", "offline-batch"),
    ],
)
def test_a_misspelt_name_gets_the_nearest_valid_one(
    tmp_path: Path, text: str, key: str, meant: str
) -> None:
    faults = [fault for fault in faults_of(tmp_path, with_lines(text)) if fault.key == key]
    assert [meant in (fault.hint or "") for fault in faults] == [True]
    assert faults[0].line == 8


def test_a_key_of_another_method_is_unknown_and_the_known_ones_are_named(tmp_path: Path) -> None:
    text = GOOD.replace("[2, 4]}", "2, draft: x}")
    fault = only_fault(tmp_path, text)
    assert (fault.line, fault.key) == (5, "sweep.speculation[0].draft")
    assert fault.rule == "is not a known key"
    assert "prompt_lookup_max" in (fault.hint or "")


def test_a_misspelt_required_key_is_one_fault_not_two(tmp_path: Path) -> None:
    text = GOOD.replace("output_tokens", "outputtokens")
    fault = only_fault(tmp_path, text)
    assert fault.hint == "did you mean 'output_tokens'?"


@pytest.mark.parametrize("method", ["draft_model", "eagle", "eagle3", "medusa"])
def test_a_draft_method_needs_a_draft(tmp_path: Path, method: str) -> None:
    fault = only_fault(tmp_path, GOOD.replace("ngram", method))
    assert (fault.key, fault.rule) == ("sweep.speculation[0].draft", "is required")
    assert fault.line == 5


def test_an_unknown_method_says_which_there_are_and_nothing_more(tmp_path: Path) -> None:
    text = GOOD.replace("method: ngram", "method: eagel, draft: x")
    fault = only_fault(tmp_path, text)
    assert fault.key == "sweep.speculation[0].method"
    assert "ngram, suffix, draft_model, eagle, eagle3, mtp, medusa" in fault.rule
    assert fault.hint == "did you mean 'eagle'?"


def test_a_suite_that_there_is_not_is_refused_and_the_nearest_named(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_lines("suites: [performance, soaking]\n"))
    assert fault.key == "suites[1]" and fault.hint == "did you mean 'soak'?"
    assert fault.rule.startswith("must be one of performance, functional, ")


@pytest.mark.parametrize(
    ("text", "rule", "value"),
    [
        ("seed: -1\n", "must be >= 0", "-1"),
        ("seed: 1.5\n", "must be a whole number", "1.5"),
        ("seed: true\n", "must be a whole number", "true"),
        ("measure: {confidence: 1}\n", "must be < 1", "1"),
        ("measure: {margin: 0}\n", "must be > 0", "0"),
        ("measure: {margin: .inf}\n", "must be a finite number", "inf"),
        ("measure: fast\n", "must be a mapping", "'fast'"),
        ("sampling: {seeded: 'true'}\n", "must be true or false", "'true'"),
        ("description: 7\n", "must be text", "7"),
        ("suites: []\n", "must not be empty", "an empty list"),
        ("load: {mode: opn}\n", "must be one of closed, open", "'opn'"),
        ("placement: {strategy: appart}\n", "must be one of separate, in_turn, shared", "'appart'"),
        (
            "cost: {device_hour: 1, currency: usd}\n",
            "must be a currency's three capital letters",
            "'usd'",
        ),
    ],
)
def test_wrong_values_in_the_products_words(
    tmp_path: Path, text: str, rule: str, value: str
) -> None:
    fault = only_fault(tmp_path, with_lines(text))
    assert (fault.rule, fault.value, fault.line) == (rule, value, 8)


def test_a_number_in_quotes_gets_a_hint(tmp_path: Path) -> None:
    assert only_fault(tmp_path, with_lines('seed: "3"\n')).hint == "take the quotes away"


@pytest.mark.parametrize(
    ("text", "key", "rule"),
    [
        ("load: {mode: open}\n", "load.rate_rps", "is required with mode: open"),
        ("load: {mode: open, arrivals: trace}\n", "load.trace", "is required with arrivals: trace"),
        (
            "load: {mode: open, rate_rps: 1, burstiness: 2.0}\n",
            "load.burstiness",
            "acts only with arrivals: gamma",
        ),
    ],
)
def test_rules_between_keys_of_the_load(tmp_path: Path, text: str, key: str, rule: str) -> None:
    good = GOOD.replace("workloads:", "  batch_size: 8\nworkloads:")
    fault = only_fault(tmp_path, good + text)
    assert (fault.key, fault.rule) == (key, rule)


def test_an_open_load_needs_the_engines_cap(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, with_lines("load: {mode: open, rate_rps: [1, 2]}\n"))
    assert fault.key == "sweep.batch_size"
    assert (
        read_text(
            tmp_path, with_lines("load: {mode: open, rate_rps: 1}\nengine: {max_num_seqs: 8}\n")
        ).load.mode
        == "open"
    )


def test_with_a_ladder_the_batch_size_is_one_cap(tmp_path: Path) -> None:
    good = GOOD.replace("workloads:", "  batch_size: [1, 8]\nworkloads:")
    fault = only_fault(tmp_path, good + "load: {concurrency: [1, 2, 16]}\n")
    assert (fault.key, fault.hint) == ("sweep.batch_size", "keep the largest, 8")


def test_rules_between_keys_are_found_beside_other_faults_but_not_because_of_them(
    tmp_path: Path,
) -> None:
    """pairs.max is no number: whether min <= max holds cannot be said."""
    faults = faults_of(tmp_path, with_lines("measure: {pairs: {min: 30, max: many}}\nseed: x\n"))
    assert [fault.key for fault in faults] == ["measure.pairs.max", "seed"]


def test_input_tokens_bounds(tmp_path: Path) -> None:
    def key_of(bounds: str) -> str:
        text = GOOD.replace("output_tokens", f"input_tokens: {bounds}, output_tokens")
        return only_fault(tmp_path, text).key.removeprefix("workloads[0].input_tokens.")

    assert key_of("{min: 9, max: 8}") == "min"
    assert key_of("{exactly: 9, max: 8}") == "exactly"
    assert key_of("{min: 9, by: cut}") == "by"
    assert key_of("{by: join}") == "by"


def test_a_target_or_servers_to_attach_to(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, GOOD.replace("target: tiny\n", ""))
    assert (fault.key, fault.rule) == ("target", "is required")
    attach = "attach: {baseline: 'http://a:1', speculative: 'https://b/x/', api_key_env: KEY}\n"
    one = GOOD.replace("target: tiny\n", attach).replace("[2, 4]", "2")
    attached = read_text(tmp_path, one).attach
    assert attached is not None
    assert attached.speculative == "https://b/x"
    several = GOOD.replace("target: tiny\n", attach)
    assert only_fault(tmp_path, several).value == "2 configurations"
    assert only_fault(tmp_path, one + "engine: {dtype: half}\n").key == "engine"


def test_secrets_are_not_taken_from_the_file(tmp_path: Path) -> None:
    attach = (
        "attach: {baseline: 'http://me:pw@a', speculative: 'http://b/v1', "
        "headers: {Authorization: Bearer x}}\n"
    )
    faults = faults_of(tmp_path, GOOD.replace("target: tiny\n", attach).replace("[2, 4]", "2"))
    assert [fault.key for fault in faults] == [
        "attach.baseline",
        "attach.headers.Authorization",
        "attach.speculative",
    ]
    assert "pw" not in "".join(map(str, faults))
    assert "Bearer x" not in "".join(map(str, faults))


def test_a_password_in_the_tracking_address_is_not_recorded(tmp_path: Path) -> None:
    read = read_text(tmp_path, with_lines("tracking: {uri: 'postgresql://me:pw@db/mlflow'}\n"))
    assert read.tracking.uri == "postgresql://me:pw@db/mlflow"
    assert read.as_plain()["tracking"]["uri"] == "postgresql://***@db/mlflow"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max-model-len: 5", "write 'max_model_len'"),
        ("model: x", "name the model under target"),
        ("speculative_config: {method: ngram}", "write it under sweep.speculation"),
    ],
)
def test_engine_arguments_that_belong_elsewhere(tmp_path: Path, name: str, hint: str) -> None:
    fault = only_fault(tmp_path, with_lines(f"engine:\n  {name}\n"))
    assert fault.line == 9
    assert (fault.hint or "").startswith(hint)


def test_options_do_not_hide_the_entrys_own_keys(tmp_path: Path) -> None:
    text = GOOD.replace("[2, 4]", "2, options: {num_speculative_tokens: 3}")
    fault = only_fault(tmp_path, text)
    assert fault.key == "sweep.speculation[0].options.num_speculative_tokens"
    assert fault.hint == "write it as the entry's own key 'speculation_length'"


def test_faults_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml: the file must exist"):
        read_experiment(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="must be a file that can be read"):
        read_experiment(tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_bytes(b"name: \xff")
    with pytest.raises(SpecError, match=r"must be UTF-8 text, got a bad byte at offset 6"):
        read_experiment(bad)


def test_the_other_keys_of_a_misspelt_method_are_checked_as_those_of_the_nearest(
    tmp_path: Path,
) -> None:
    text = GOOD.replace("method: ngram", "method: ngrm").replace(
        "speculation_length: [2, 4]", "speculation_length: [2, 0]"
    )
    assert text.count("ngrm") == text.count("[2, 0]") == 1
    keys = [fault.key for fault in faults_of(tmp_path, text)]
    assert keys == ["sweep.speculation[0].method", "sweep.speculation[0].speculation_length[1]"]


def test_a_bundled_set_that_is_not_there_is_a_fault_with_its_line(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, GOOD.replace("bundled:chat", "bundled:chatt"))
    assert fault.key == "workloads[0].prompts"
    assert fault.line is not None
    assert fault.hint == "did you mean 'bundled:chat'?"


def test_the_bundled_sets_that_may_be_named_are_those_that_are_installed() -> None:
    assert bundled_names() == BUNDLED
