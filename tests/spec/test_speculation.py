"""Every entry of the sweep expands by itself."""

from __future__ import annotations

from pathlib import Path

from orchestrator.plan.arms import speculations
from tests.spec.written import GOOD, only_fault, read_text


def labels(folder: Path, *entries: str) -> list[str]:
    lines = "".join(f"    - {entry}\n" for entry in entries)
    text = GOOD.replace("    - {method: ngram, speculation_length: [2, 4]}\n", lines)
    return [
        f"{point.label()} {dict(point.options)}".removesuffix(" {}")
        for point in speculations(read_text(folder, text))
    ]


def test_lists_of_one_entry_multiply_and_entries_add(tmp_path: Path) -> None:
    assert labels(
        tmp_path,
        "{method: ngram, speculation_length: [2, 4], prompt_lookup_max: [3, 5]}",
        "{method: eagle, draft: [a, b], speculation_length: 1}",
    ) == [
        "ngram K=2 {'prompt_lookup_max': 3}",
        "ngram K=2 {'prompt_lookup_max': 5}",
        "ngram K=4 {'prompt_lookup_max': 3}",
        "ngram K=4 {'prompt_lookup_max': 5}",
        "eagle(a) K=1",
        "eagle(b) K=1",
    ]


def test_options_are_passed_on_whole_even_when_they_hold_lists(tmp_path: Path) -> None:
    schedule = "num_speculative_tokens_per_batch_size: [[1, 2, 4], [3, 16, 0]]"
    assert labels(
        tmp_path, f"{{method: ngram, speculation_length: 4, options: {{{schedule}}}}}"
    ) == ["ngram K=4 {'num_speculative_tokens_per_batch_size': [[1, 2, 4], [3, 16, 0]]}"]


def test_suffix_takes_the_trees_depth_for_its_longest_draft(tmp_path: Path) -> None:
    assert labels(tmp_path, "{method: suffix}") == ["suffix K=24"]
    assert labels(tmp_path, "{method: suffix, suffix_decoding_max_tree_depth: [8, 16]}") == [
        "suffix K=8 {'suffix_decoding_max_tree_depth': 8}",
        "suffix K=16 {'suffix_decoding_max_tree_depth': 16}",
    ]


def test_mtp_needs_no_draft(tmp_path: Path) -> None:
    assert labels(tmp_path, "{method: mtp, speculation_length: 1}") == ["mtp K=1"]


def test_a_window_that_no_combination_satisfies_is_a_fault(tmp_path: Path) -> None:
    text = GOOD.replace("[2, 4]", "2, prompt_lookup_min: [4, 5], prompt_lookup_max: 3")
    assert only_fault(tmp_path, text).value == "prompt_lookup_min=4, prompt_lookup_max=3"
