"""Whatever a file holds, the reader answers with an experiment or with faults that have a place."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import SpecError
from orchestrator.spec.document import parse
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.read import read_experiment

WHOLE: dict[str, Any] = {
    "name": "small",
    "target": "tiny",
    "engine": {"dtype": "bfloat16", "max_num_seqs": 8},
    "sweep": {
        "speculation": [
            {"method": "ngram", "speculation_length": [2, 4], "options": {"a": 1}},
            {"method": "eagle", "draft": "x", "speculation_length": 1},
        ],
        "batch_size": [8],
        "temperature": [0.0],
    },
    "workloads": [
        {"name": "a", "prompts": "bundled:chat", "output_tokens": 8, "input_tokens": {"max": 9}},
        {"name": "b", "prompts": "bundled:code", "output_tokens": 8},
    ],
    "load": {"mode": "open", "rate_rps": [1, 2]},
    "measure": {"pairs": {"min": 4, "max": 6}, "timeouts": {"stall_s": 1.0}},
    "slo": {"ttft_p99_s": 1.0},
    "suites": ["performance"],
    "cost": {"device_hour": 1.0},
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """(holder, key) of everything inside."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += places(inner)
    return found


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_file_with_some_parts_replaced(tmp_path: Path, data: st.DataObject) -> None:
    content = copy.deepcopy(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from(places(content)))
        if data.draw(st.booleans()):
            holder[key] = data.draw(anything)
        elif isinstance(holder, dict):
            holder[data.draw(st.text(max_size=8))] = holder.pop(key)
        if not content:
            break
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    try:
        assert isinstance(read_experiment(file), Experiment)
    except SpecError as error:
        assert error.faults
        for fault in error.faults:
            assert fault.line is not None
            assert fault.rule
        assert len(set(error.faults)) == len(error.faults)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:-&*!<>{}[],#|'\"\n\t ?%@", max_size=40))
@example("a: &x {b: *x}")
@example("? [a]\n: b")
@example("<<: *a")
@example("!!binary x")
def test_any_text_is_parsed_into_plain_values_or_faulted(text: str) -> None:
    document = parse(text, "f")
    assert document.faults or plain(document.value)


def plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and plain(inner) for name, inner in value.items())
    if isinstance(value, list):
        return all(plain(inner) for inner in value)
    return value is None or isinstance(value, str | bool | int | float | bytes | set | date)


def test_the_whole_file_is_good(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(WHOLE))
    assert read_experiment(file).name == "small"
