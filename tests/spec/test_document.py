"""YAML with lines: safe, bounded, and nothing given twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.spec.document import MAX_BYTES, key_text, parse
from tests.spec.written import GOOD, faults_of, only_fault


def test_every_key_and_item_has_its_line() -> None:
    document = parse("a: 1\nb:\n  - x\n  - c: 2\n    d: [3,\n      4]\n", "f")
    assert document.value == {"a": 1, "b": ["x", {"c": 2, "d": [3, 4]}]}
    lines = {key_text(path): line for path, line in document.lines.items()}
    assert lines == {
        "": 1,
        "a": 1,
        "b": 2,
        "b[0]": 3,
        "b[1]": 4,
        "b[1].c": 4,
        "b[1].d": 5,
        "b[1].d[0]": 5,
        "b[1].d[1]": 6,
    }


def test_a_place_that_the_file_lacks_has_the_line_of_what_is_around_it() -> None:
    document = parse("a:\n  b: 1\n", "f")
    assert document.line(("a", "missing")) == 1
    assert document.line(("nothing",)) == 1


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: [1", 1, "is not YAML: expected ',' or ']'"),
        ("a: 1\nb: c: d\n", 2, "mapping values are not allowed here"),
        ("a:\n\t- 1\n", 2, "is not YAML"),
        ("a: 1\n---\nb: 2\n", 2, "is not YAML"),
        ("", 1, "must not be empty"),
        ("# nothing\n", 1, "must not be empty"),
        ("a: *nowhere\n", 1, "found undefined alias"),
        ("a: &a [*a]\n", 1, "an alias refers to what it is inside of"),
    ],
)
def test_what_is_not_yaml_is_one_fault_with_its_line(text: str, line: int, words: str) -> None:
    (fault,) = parse(text, "f").faults
    assert fault.line == line
    assert words in fault.rule


def test_a_key_given_twice_is_a_fault_that_names_both_lines(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, GOOD + "seed: 1\nname: other\n")
    assert str(fault).endswith(":9 name: must not be given twice; it is already on line 1")


def test_no_object_is_made_from_a_tag(tmp_path: Path) -> None:
    text = GOOD.replace("target: tiny", "target: !!python/object/apply:os.system [echo]")
    assert {fault.key for fault in faults_of(tmp_path, text)} == {"target"}
    scalar = GOOD.replace("target: tiny", "target: !!python/name:os.system ''")
    assert only_fault(tmp_path, scalar).rule == "cannot be read as a value"


def test_an_alias_bomb_is_refused_without_being_written_out() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (fault,) = parse("\n".join(lines), "f").faults
    assert "aliases written out" in fault.rule
    assert int(fault.value or 0) > 10**11


def test_deep_nesting_is_a_fault() -> None:
    (fault,) = parse("[" * 500, "f").faults
    assert fault.rule == "is nested too deeply"


def test_a_file_above_the_limit_is_refused() -> None:
    (fault,) = parse("a: " + "x" * MAX_BYTES, "f").faults
    assert fault.rule == f"must be at most {MAX_BYTES} bytes"


def test_numbers_in_scientific_notation_are_numbers() -> None:
    assert parse("a: 1e-3\nb: 2.5E+2\nc: 1e3x\n", "f").value == {"a": 1e-3, "b": 250.0, "c": "1e3x"}


def test_anchors_and_merges_are_read_and_a_fault_in_them_is_found() -> None:
    document = parse("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\n", "f")
    assert document.value["mine"] == {"x": 1, "y": 3}
    assert document.lines[("mine", "y")] == 4
    assert not document.faults
    assert "'<<' must be given a mapping" in parse("a: {<<: 3}", "f").faults[0].rule
