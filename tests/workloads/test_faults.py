"""A prompt file that is wrong says file, line, rule, value and what to do; all faults at once."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WorkloadError
from orchestrator.workloads.limits import Limits
from orchestrator.workloads.load import load_prompts


def message(path: Path, content: str | bytes, **options: object) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(WorkloadError) as caught:
        load_prompts(path.name, base=path.parent, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = message(
        tmp_path / "p.jsonl",
        '{"id": "a", "prompt": "one"}\n'
        '{"id": "a", "prompt": "two"}\n'
        '{"id": "c", "prompt": "  "}\n'
        "{broken\n"
        '{"id": "d", "prompt": 7}\n'
        '{"id": "e", "prompt": "x", "text": "y"}\n'
        '["not", "an object"]\n'
        '{"id": "f"}\n'
        '{"id": "g", "prompt": "nul \\u0000 inside"}\n'
        '{"id": "h", "prompt": "half \\ud800 pair"}\n'
        '{"id": [1], "prompt": "x"}\n'
        '{"id": "i", "turns": []}\n',
    )
    for expected in (
        "p.jsonl:2 id: must be unique, got 'a'; line 1 has it too",
        "p.jsonl:3 prompt: must not be empty, got '  '",
        "p.jsonl:4: must be one JSON object (",
        "p.jsonl:5 prompt: must be text, got 7",
        "p.jsonl:6: must have only one of the columns prompt, text, question, turns, messages, got",
        "p.jsonl:7: must be a JSON object, got ['not', 'an object']",
        "p.jsonl:8: must have one of the columns",
        "p.jsonl:9 prompt: must not hold NUL characters",
        "p.jsonl:10 prompt: must be valid Unicode",
        "p.jsonl:11 id: must be a string or an integer, got [1]",
        "p.jsonl:12 turns: must hold at least one user turn",
    ):
        assert expected in text, expected


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("e.jsonl", "", "e.jsonl: must not be empty (0 bytes)"),
        ("e.jsonl", " \n\n", "e.jsonl: must not be empty (only white space)"),
        ("u.jsonl", b'{"prompt": "a"}\n\xe9', "u.jsonl:2: must be UTF-8 (byte 0xe9 at offset 16)"),
        ("u.txt", "hi".encode("utf-16"), "u.txt:1: must be UTF-8 (this is UTF-16)"),
        ("n.txt", b"a\nb\0c", "n.txt:2: must not hold NUL characters"),
        ("c.csv", "prompt,id\na,1,2\n", "c.csv:2: must have 2 fields, as the header, got 3"),
        ("c.csv", 'prompt,id\n"a,1\n', "c.csv:2: must be well-formed CSV"),
        ("c.csv", "prompt,prompt\na,b\n", "c.csv:1 header: must not repeat a name"),
        ("c.csv", "question,prompt\na,b\n", "c.csv:2 format: is ambiguous"),
        ("c.csv", "a,b\n1,2\n", "c.csv:1 header: must name one of the columns prompt, text"),
        ("c.csv", "prompt,id\n", "must hold at least one record"),
        ("a.json", '[{"prompt": "x"}\n {"prompt": "y"}]', "a.json:2: must have ',' or ']' after"),
        ("a.json", '[{"prompt": "x"},\n\n 5]', "a.json:3: must be a JSON object, got 5"),
        ("a.json", '[{"prompt": "x"}] tail', "a.json:1: must end after the closing ']'"),
        ("a.json", "[]", "must hold at least one record"),
        ("p.parquet", b"PAR1 and then nothing", "p.parquet: must be a sound Parquet file"),
        ("r.jsonl", '{"turns": ["a"], "reference": ["b", "c"]}', "at most one answer per turn (1)"),
        ("m.jsonl", '{"messages": [{"role": "bot", "content": "x"}]}', "messages[0].role: must be"),
        ("m.jsonl", '{"messages": [{"role": "user", "content": [{}]}]}', "messages[0].content:"),
        ("s.json", '[{"conversations": [{"from": "it", "value": "x"}]}]', "conversations[0].from"),
        ("s.json", '[{"conversations": []}]', "skipped 1: no message of a human"),
        ("j.jsonl", "[" * 200_000, "must be an array of JSON objects"),
        ("j.jsonl", '{"a":' * 200_000, "j.jsonl:1: must not be nested this deeply"),
    ],
)
def test_one_fault(tmp_path: Path, name: str, content: str | bytes, expected: str) -> None:
    assert expected in message(tmp_path / name, content)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "both.jsonl",
            '{"conversations": [], "prompt": "x"}',
            "format: is ambiguous: several columns may hold the prompt, "
            "got ['conversations', 'prompt']",
        ),
        ("two.jsonl", '{"question": "q", "text": "t"}', "got ['text', 'question']"),
        ("one.txt", "question\nWhy?\n", "the first line may be a CSV header or a prompt"),
        (
            "trace.csv",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01,1,1\n",
            "this is an arrival trace",
        ),
        ("odd.jsonl", '{"body": "x"}', "must be recognisable"),
    ],
)
def test_a_format_that_cannot_be_told_is_an_error_not_a_guess(
    tmp_path: Path, name: str, content: str, expected: str
) -> None:
    assert expected in message(tmp_path / name, content)


def test_saying_the_format_settles_it(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("question\nWhy?\n")
    as_text = load_prompts("one.txt", base=tmp_path, format="text")
    as_csv = load_prompts("one.txt", base=tmp_path, format="csv")
    assert [len(as_text), len(as_csv)] == [2, 1]
    with pytest.raises(WorkloadError, match="format: must be auto or one of"):
        load_prompts("one.txt", base=tmp_path, format="xml")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"nothing.jsonl: must be an existing file"):
        load_prompts("nothing.jsonl", base=tmp_path)
    with pytest.raises(WorkloadError, match="must be a regular file"):
        load_prompts(".", base=tmp_path)


def test_limits_are_errors_with_the_limit_in_them(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    three = "".join(f'{{"prompt": "p{i}"}}\n' for i in range(3))
    assert "must be at most 10 bytes" in message(path, three, limits=Limits(file_bytes=10))
    assert "p.jsonl:3 prompts: must hold at most 2 prompts" in message(
        path, three, limits=Limits(prompts=2)
    )
    assert "must be at most 1 characters, got 2" in message(
        path, three, limits=Limits(characters=1)
    )
    shown = message(path, "{\n" * 50, limits=Limits(faults_shown=5))
    assert shown.count("\n") == 5
    assert shown.endswith(f"… and 45 more faults in {path}")


def test_the_csv_field_limit_of_the_process_is_left_as_it_was(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    path = tmp_path / "long.csv"
    path.write_text("prompt,id\n" + "word " * 40_000 + ",1\n")
    assert len(load_prompts("long.csv", base=tmp_path).prompts[0].turns[0]) > before
    assert csv.field_size_limit() == before


def test_a_byte_order_mark_and_windows_line_ends_are_no_content(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"prompt": "x"}\r\n{"prompt": "y"}\r\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"prompt":"x"}\n\n{ "prompt": "y" }')
    first, second = (load_prompts(f"{name}.jsonl", base=tmp_path) for name in "ab")
    assert first.hash == second.hash


@given(st.binary(max_size=300), st.sampled_from([".jsonl", ".json", ".csv", ".txt", ".parquet"]))
def test_any_bytes_at_all_give_prompts_or_a_workload_error(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(raw)
    try:
        found = load_prompts(path.name, base=path.parent)
    except WorkloadError as error:
        assert str(path) in str(error)
    else:
        assert all(turn.strip() for prompt in found.prompts for turn in prompt.turns)
