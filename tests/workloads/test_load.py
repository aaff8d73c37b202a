"""What a reference in the specification becomes, format by format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from orchestrator.errors import MissingExtra, WorkloadError
from orchestrator.workloads.bundled import FOLDER, bundled_names
from orchestrator.workloads.load import load_prompts
from orchestrator.workloads.prompt_set import PromptSet

DATA = Path(__file__).parents[1] / "data" / "workloads"


def load(name: str, **options: object) -> PromptSet:
    return load_prompts(name, base=DATA, **options)  # type: ignore[arg-type]


def test_plain_jsonl_csv_and_parquet_of_the_same_records_are_the_same_set(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [json.loads(line) for line in (DATA / "plain.jsonl").read_text().splitlines()]
    path = tmp_path / "plain.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)

    jsonl, table, parquet = load("plain.jsonl"), load("prompts.csv"), load(str(path))

    assert jsonl.prompts == table.prompts == parquet.prompts
    assert jsonl.hash == table.hash == parquet.hash
    assert jsonl.prompts[0].turns == ("When are quinces ripe,\nand how do I store them?",)
    assert [prompt.system for prompt in jsonl.prompts] == ["Answer in one line.", None]
    assert jsonl.categories == {"garden": 1, "kitchen": 1}


def test_parquet_keeps_lists_of_turns_and_messages(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "m.parquet"
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"messages": messages}]), path)
    (prompt,) = load(str(path)).prompts
    assert (prompt.id, prompt.turns, prompt.reference) == ("00001", ("Hello",), ("Hi",))


def test_text_is_one_prompt_a_line_and_blank_lines_are_passed_over() -> None:
    found = load("lines.txt")
    assert [prompt.id for prompt in found.prompts] == ["00001", "00002"]
    assert found.prompts[1].turns[0].startswith("把这句话")


def test_messages_give_system_turns_and_the_recorded_answers() -> None:
    (prompt,) = load("messages.jsonl").prompts
    assert prompt.system == "You mend clocks."
    assert prompt.turns == ("It stops at noon.", "They touch. What now?")
    assert prompt.reference == ("Check the hands.",)


def test_spec_bench_keeps_turns_and_orders_by_the_number_of_the_question() -> None:
    found = load("spec_bench.jsonl")
    assert [prompt.id for prompt in found.prompts] == ["9", "301", "302"]
    assert len(found.prompts[1].turns) == 2
    assert found.prompts[2].reference == ("The barge has been lying in the reeds since Tuesday.",)
    assert found.categories == {"qa": 1, "translation": 1, "writing": 1}


def test_mt_bench_is_told_from_its_categories_and_keeps_a_reference_per_turn() -> None:
    found = load("mt_bench.jsonl")
    assert found.prompts[0].reference == ("9", "45")
    assert found == load("mt_bench.jsonl", format="mt-bench")
    with pytest.raises(
        WorkloadError, match=r"spec_bench.jsonl:2 category: must be one of MT-Bench"
    ):
        load("spec_bench.jsonl", format="mt-bench")


def test_sharegpt_human_messages_are_turns_and_answers_are_the_reference() -> None:
    found = load("sharegpt.json")
    first, second = found.prompts
    assert first.turns == ("How do I caulk a small boat?", "With which tool?")
    assert first.reference == ("Rake out the seams first.",)
    # The answer before anybody asked is gone; two questions in a row are one turn.
    assert second.system == "Be brief."
    assert second.turns == ("One more thing.\n\nIs tar needed?",)
    assert second.reference == ("Only outside.",)
    assert found.notes == ("skipped 1: no message of a human in the conversation",)


def test_categories_choose_prompts_and_change_name_and_hash() -> None:
    everything, kitchen = load("plain.jsonl"), load("plain.jsonl", categories=["kitchen"])
    assert [prompt.id for prompt in kitchen.prompts] == ["b"]
    assert kitchen.name == "plain[kitchen]"
    assert kitchen.hash != everything.hash
    with pytest.raises(WorkloadError, match="got \\['attic'\\]; it has garden, kitchen"):
        load("plain.jsonl", categories=["attic"])


@pytest.mark.parametrize(
    "name", ["chat", "code", "summarize", "rewrite", "reasoning", "translation"]
)
def test_every_bundled_set_has_at_least_60_prompts_with_a_category(name: str) -> None:
    if name not in bundled_names():
        pytest.skip(f"bundled:{name} is not in this checkout")
    found = load(f"bundled:{name}")
    assert found.name == name
    assert len(found) >= 60
    assert "uncategorised" not in found.categories
    texts = [prompt.turns for prompt in found.prompts]
    assert len(set(texts)) == len(texts), "a prompt that repeats another one lies about speed"


def test_an_unknown_bundled_set_names_the_nearest() -> None:
    with pytest.raises(WorkloadError, match="did you mean bundled:chat"):
        load("bundled:chatt")
    with pytest.raises(WorkloadError, match=r"there are .*chat"):
        load("bundled:../../secrets")


def test_bundled_files_lie_inside_the_package_that_the_wheel_takes_whole() -> None:
    assert FOLDER.parent.name == "workloads"
    assert (FOLDER / "README.md").is_file()


def test_loading_a_bundled_set_imports_nothing_heavy() -> None:
    code = (
        "import sys, pathlib\n"
        "from orchestrator.workloads.load import load_prompts\n"
        "load_prompts('bundled:chat', base=pathlib.Path('.'))\n"
        "heavy = {'pandas', 'numpy', 'pyarrow', 'datasets', 'ray', 'torch', 'pydantic', 'vllm'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_spec_bench_itself() -> None:
    folder = os.environ.get("ORCHESTRATOR_SHARED_DATA")
    root = Path(folder) if folder else Path(__file__).parents[2].parent / "shared" / "data"
    path = root / "spec_bench_question.jsonl"
    if not path.is_file():
        pytest.skip(
            "Spec-Bench's question file is not here; name its folder in ORCHESTRATOR_SHARED_DATA"
        )
    found = load(str(path))
    assert len(found) == 480
    assert sum(len(prompt.turns) == 2 for prompt in found.prompts) == 80
    assert found.categories["translation"] == 80


class TestHub:
    def test_offline_it_says_what_to_do_instead(self) -> None:
        with pytest.raises(WorkloadError, match="must be readable offline, got 'hf:some/set'"):
            load("hf:some/set")

    def test_without_the_package_it_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(MissingExtra, match=r"\[hub\]"):
            load("hf:some/set", offline=False)

    def test_records_are_read_like_those_of_a_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        def load_dataset(name: str, *, split: str, revision: str | None) -> list[dict[str, str]]:
            asked.append((name, split, revision))
            return [{"id": "x", "question": "Why is the sea salt?"}]

        monkeypatch.setitem(
            sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset)
        )
        found = load("hf:some/set@v2:test", offline=False)
        assert asked == [("some/set", "test", "v2")]
        assert found.prompts[0].turns == ("Why is the sea salt?",)
        assert found.source == "hf:some/set@v2:test"

    def test_what_the_hub_refuses_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def load_dataset(*_: object, **__: object) -> None:
            raise FileNotFoundError("no such split\nmany more lines")

        monkeypatch.setitem(
            sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset)
        )
        with pytest.raises(WorkloadError, match=r"could not be loaded \(no such split\)"):
            load("hf:some/set", offline=False)
