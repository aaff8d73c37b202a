"""Name, hash, categories and lengths of a set."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.prompt_set import (
    PromptSet,
    length_statistics,
    of_categories,
    with_token_counts,
)
from tests.workloads.counting import count_words

FERRY = Prompt("p-2", "travel", ("When does the ferry leave?", "And on Sundays?"), system="Brief.")
BARLEY = Prompt("p-10", "kitchen", ("How long does barley soak?",), reference=("A night.",))


def of(*prompts: Prompt) -> PromptSet:
    return PromptSet.of("set", "here", prompts)


def test_prompts_are_ordered_by_id_with_numbers_by_value() -> None:
    assert [prompt.id for prompt in of(BARLEY, FERRY).prompts] == ["p-2", "p-10"]


def test_the_hash_is_of_the_content_not_of_order_name_or_counts() -> None:
    one = of(FERRY, BARLEY)
    other = PromptSet.of("other", "there", [BARLEY, replace(FERRY, tokens=7)])
    assert one.hash == other.hash
    assert one.hash == with_token_counts(one, count_words).hash


@pytest.mark.parametrize(
    "changed",
    [
        replace(FERRY, id="p-3"),
        replace(FERRY, category="sea"),
        replace(FERRY, turns=("When does the ferry leave?",)),
        replace(FERRY, turns=("When does the ferry leave? And on Sundays?",)),
        replace(FERRY, system=None),
        replace(FERRY, reference=("At nine.",)),
    ],
)
def test_every_field_of_the_content_changes_the_hash(changed: Prompt) -> None:
    assert of(FERRY, BARLEY).hash != of(changed, BARLEY).hash


def test_lengths_are_of_the_first_turn_and_tokens_are_none_until_counted() -> None:
    plain = of(FERRY, BARLEY)
    assert plain.tokens is None
    assert plain.words.min == plain.words.max == 5
    assert (plain.characters.min, plain.characters.max) == (26, 26)

    counted = with_token_counts(plain, count_words)
    assert [prompt.tokens for prompt in counted.prompts] == [5, 5]
    assert counted.tokens is not None
    assert counted.tokens.mean == 5
    assert plain.prompts[0].tokens is None, "the set handed in is not touched"


def test_describe_is_plain_json_and_says_none_for_what_was_not_counted() -> None:
    described = of(FERRY, BARLEY).describe()
    assert described["prompts"] == 2
    assert described["multi_turn_prompts"] == 1
    assert described["categories"] == {"kitchen": 1, "travel": 1}
    assert described["tokens"] is None
    assert described["words"] == {"min": 5, "median": 5.0, "mean": 5.0, "p95": 5.0, "max": 5}


def test_length_statistics_worked_by_hand() -> None:
    # 1 2 3 4 10: p95 lies at position 3.8, between 4 and 10.
    found = length_statistics([10, 2, 3, 1, 4])
    assert (found.count, found.min, found.median, found.mean, found.max) == (5, 1, 3, 4, 10)
    assert found.p95 == pytest.approx(4 + 0.8 * 6)


@given(st.lists(st.integers(0, 10_000), min_size=1))
def test_length_statistics_are_ordered(lengths: list[int]) -> None:
    found = length_statistics(lengths)
    assert found.min <= found.median <= found.p95 <= found.max
    assert found.min <= found.mean <= found.max


def test_what_is_no_set() -> None:
    with pytest.raises(WorkloadError, match="at least one prompt"):
        of()
    with pytest.raises(WorkloadError, match=r"ids must be unique, got \['p-2'\]"):
        of(FERRY, FERRY)
    with pytest.raises(WorkloadError, match="one count per text, got 1 for 2"):
        with_token_counts(of(FERRY, BARLEY), lambda texts: [1])


def test_of_categories_with_none_named_is_the_set_itself() -> None:
    whole = of(FERRY, BARLEY)
    assert of_categories(whole, ()) is whole
    assert [prompt.id for prompt in of_categories(whole, ["travel"]).prompts] == ["p-2"]
