"""The bundled tasks are fair, and their checkers read answers as a person would."""

import ast
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WorkloadError
from orchestrator.run.suites.tasks.arithmetic import (
    check_arithmetic,
    contains_numbers,
    final_number,
    numbers_in,
    value_of,
)
from orchestrator.run.suites.tasks.check import check
from orchestrator.run.suites.tasks.code import check_code, code_of
from orchestrator.run.suites.tasks.extraction import check_extraction, first_object, key_recall
from orchestrator.run.suites.tasks.load import load_tasks, read_tasks, reasoning_answers
from orchestrator.run.suites.tasks.task import Task
from orchestrator.workloads.bundled import bundled_path

TASKS = load_tasks()
CODE = [task for task in TASKS if task.kind == "code"]


def test_how_many_there_are() -> None:
    kinds = Counter(task.kind for task in TASKS)
    assert kinds["arithmetic"] >= 40
    assert kinds["extraction"] >= 20
    assert kinds["code"] >= 20
    assert len({task.id for task in TASKS}) == len({task.prompt for task in TASKS}) == len(TASKS)


# --- arithmetic


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("7 times 8 is 56.\nAnswer: 56", 56),
        ("Answer: **56**", 56),
        ("The answer is $1,250.50.", Fraction("1250.5")),
        ("So 3 + 4 = 7", 7),
        ("Answer: 12 − 5 = 7", 7),
        ("Answer: -3", -3),
        ("Answer: \\frac{3}{4}", Fraction(3, 4)),
        ("Answer: 3/4", Fraction(3, 4)),
        ("Answer: 56\n\nIs there anything else? I know 2 jokes.", 56),
        ("Answer: I do not know, perhaps 5", 5),
        ("The answer is: see above. 12", 12),
        ("no idea", None),
        ("", None),
    ],
)
def test_the_final_number(answer: str, read: Fraction | int | None) -> None:
    assert final_number(answer) == read


@pytest.mark.parametrize(
    ("known", "answer", "passed"),
    [("3/4", "Answer: 0.75", True), ("1.35", "Answer: 1.350", True), ("5", "Answer: 15", False),
     ("0.333", "Answer: 1/3", False), ("15.5", "Answer: 15.50 euros", True)],
)  # fmt: skip
def test_numbers_are_compared_exactly(known: str, answer: str, passed: bool) -> None:
    assert check_arithmetic(Task("t", "arithmetic", "?", known), answer).passed is passed


@given(st.fractions(max_denominator=1000))
def test_a_number_written_as_it_is_known_passes(number: Fraction) -> None:
    assert value_of(str(number)) == number
    assert check_arithmetic(Task("t", "arithmetic", "?", str(number)), f"Answer: {number}").passed


@given(st.text(max_size=200))
def test_no_answer_is_too_odd_to_check(answer: str) -> None:
    for task in (TASKS[0], next(t for t in TASKS if t.kind == "extraction")):
        assert check(task, answer).passed in (True, False)


def test_numbers_in_a_text() -> None:
    assert numbers_in("1,250 and 3/4, v2, 1/0") == [1250, Fraction(3, 4)]


@pytest.mark.parametrize("task", [t for t in TASKS if t.kind == "arithmetic"], ids=lambda t: t.id)
def test_the_known_answer_passes_and_its_neighbour_does_not(task: Task) -> None:
    number = value_of(task.answer or "")
    assert number is not None
    assert check(task, f"Answer: {task.answer}").passed
    assert not check(task, f"Answer: {number + 1}").passed


@pytest.mark.parametrize(
    "task",
    [t for t in TASKS if t.prompt.startswith("What is ") and " times " in t.prompt],
    ids=lambda t: t.id,
)
def test_products_by_the_machine(task: Task) -> None:
    a, b = (int(n) for n in numbers_in(task.prompt)[:2])
    assert task.answer == str(a * b)


# --- the reasoning prompts' known answers


def test_reasoning_answers_belong_to_the_bundled_prompts() -> None:
    rows = bundled_path("reasoning").read_text(encoding="utf-8").splitlines()
    ids = {row.split('"')[3] for row in rows}
    known = reasoning_answers()
    assert set(known) <= ids
    assert len(known) >= 60
    assert all(value_of(number) is not None for numbers in known.values() for number in numbers)


def test_all_final_numbers_must_be_said_at_the_end() -> None:
    assert contains_numbers("… so there are 51 cars and 33 bicycles.", ("51", "33"))
    assert not contains_numbers("… so there are 51 cars.", ("51", "33"))
    assert not contains_numbers("51 and 33" + " and so on" * 60, ("51", "33"))


# --- extraction

PERSON = Task("t", "extraction", "?", keys={"name": "Ana", "age": "34"})


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        ('{"name": "Ana", "age": 34}', True),
        ('Here it is:\n```json\n{"age": "34.0", "name": " ana "}\n```', True),
        ('{"name": "Ana", "age": 34, "city": "Basel"}', True),
        ('{"name": "Ana"}', False),
        ('{"name": "Ana", "age": 35}', False),
        ('{"name": "Ana", "age": null}', False),
        ('{name: Ana}', False),
        ('{not json} {"name": "Ana", "age": 34}', True),
        ("Ana is 34", False),
    ],
)  # fmt: skip
def test_extraction(answer: str, passed: bool) -> None:
    assert check_extraction(PERSON, answer).passed is passed


def test_what_is_wrong_is_said() -> None:
    found = check_extraction(PERSON, '{"name": "Ana", "age": 35}')
    assert found.why == "age: read 35, expected '34'"


def test_key_recall() -> None:
    assert key_recall({"a": "1", "b": "2"}, '{"a": 1}') == 0.5
    assert key_recall({}, "{}") is None
    assert first_object("[1]") is None


@pytest.mark.parametrize("task", [t for t in TASKS if t.kind == "extraction"], ids=lambda t: t.id)
def test_every_value_can_be_found_in_its_text(task: Task) -> None:
    assert task.keys
    text = task.prompt.split("Text: ")[1]
    assert all(value in text for value in task.keys.values())
    assert all(f'"{key}"' in task.prompt for key in task.keys)


# --- code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```bash\nls\n```\n```py\nx = 1\n```\n```python\ny = 2\n```", "x = 1\n\ny = 2\n"),
        ("```python\nx = 1", "x = 1"),
        ("def f():\n    return 1", "def f():\n    return 1"),
        ("I cannot.", None),
    ],
)
def test_the_code_of_an_answer(answer: str, code: str | None) -> None:
    assert code_of(answer) == code


@pytest.mark.parametrize("task", CODE[:2], ids=lambda t: t.id)
def test_a_solution_passes_and_a_wrong_one_fails(task: Task) -> None:
    assert check_code(task, f"```python\n{task.solution}\n```").passed
    assert check_code(task, "```python\nx = 1\n```").passed is False


@pytest.mark.slow
@pytest.mark.parametrize("task", CODE, ids=lambda t: t.id)
def test_every_solution_passes_and_an_empty_function_fails(task: Task) -> None:
    assert task.solution is not None
    assert check_code(task, f"```python\n{task.solution}\n```").passed
    function = next(n for n in ast.parse(task.solution).body if isinstance(n, ast.FunctionDef))
    empty = f"def {function.name}({ast.unparse(function.args)}):\n    return None"
    assert check_code(task, f"```python\n{empty}\n```").passed is False


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "raise SystemExit",
        "def add(a, b): return",
    ],
)
def test_ending_early_is_not_passing(code: str) -> None:
    assert check_code(CODE[0], f"```python\n{code}\n```").passed is False


def test_no_code_fails_without_running_anything() -> None:
    assert check_code(CODE[0], "Sorry.").why == "no code in the answer"


# --- files


def test_a_broken_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "a", "prompt": "?", "answer": "1"}\n{"id": "b", "prompt": "?"}\n')
    with pytest.raises(WorkloadError, match=r"tasks\.jsonl:2: arithmetic tasks need 'answer'"):
        read_tasks("arithmetic", path)
    path.write_text('{"id": "a", "prompt": "?", "answer": "1"}\n' * 2)
    with pytest.raises(WorkloadError, match="'a' twice"):
        read_tasks("arithmetic", path)
    path.write_text("{")
    with pytest.raises(WorkloadError, match=r"tasks\.jsonl:1: a task must be a JSON object"):
        read_tasks("arithmetic", path)
