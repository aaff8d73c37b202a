"""Input length by selection, by cut and by join; always real text, always labelled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.cut import cut_to_tokens
from orchestrator.workloads.length import InputLength, control_length
from orchestrator.workloads.prompt_set import PromptSet
from tests.workloads.counting import count_quads, count_words


def words(count: int, letter: str = "w") -> str:
    return " ".join(f"{letter}{i}" for i in range(count))


def of(*lengths: int, category: str = "c") -> PromptSet:
    prompts = [
        Prompt(f"p{i}", category, (words(length, f"p{i}w"), "go on"), reference=("yes",))
        for i, length in enumerate(lengths, start=1)
    ]
    return PromptSet.of("set", "here", prompts)


def tokens(prompts: PromptSet) -> list[int | None]:
    return [prompt.tokens for prompt in prompts.prompts]


def test_select_leaves_out_what_is_outside_the_bounds_and_changes_nothing_else() -> None:
    found = control_length(of(5, 10, 20, 40), InputLength(min=10, max=20), count_words)
    assert tokens(found) == [10, 20]
    assert [prompt.reference for prompt in found.prompts] == [("yes",), ("yes",)]
    assert found.name == "set+selection(min=10,max=20)"
    assert found.treatment == "selection(min=10,max=20)"
    assert found.notes == ("selection(min=10,max=20): 2 prompts out of 4",)


def test_exactly_allows_the_tolerance_to_either_side() -> None:
    # 100 ± 5% = 95..105
    found = control_length(of(94, 95, 100, 105, 106), InputLength(exactly=100), count_words)
    assert tokens(found) == [95, 100, 105]


def test_cut_shortens_the_long_drops_the_short_and_forgets_answers_to_the_whole() -> None:
    found = control_length(of(5, 12, 40), InputLength(min=10, max=20, by="cut"), count_words)
    assert tokens(found) == [12, 20]
    untouched, cut = found.prompts
    assert untouched.reference == ("yes",)
    assert cut.turns == (words(20, "p3w"), "go on")
    assert cut.reference is None
    assert found.treatment == "cut(min=10,max=20)"


def test_join_uses_each_text_once_with_a_blank_line_between_then_cuts() -> None:
    # 6+6 reaches 10 and is cut to it; 4+4+4 reaches 10; the last 9 do not reach it and go.
    length = InputLength(exactly=10, tolerance=0, by="join")
    found = control_length(of(6, 6, 4, 4, 4, 9), length, count_words)
    assert tokens(found) == [10, 10]
    assert [prompt.id for prompt in found.prompts] == ["p1+1", "p3+2"]
    first = found.prompts[0]
    assert first.turns == (words(6, "p1w") + "\n\n" + words(4, "p2w"),)
    assert found.treatment == "join(exactly=10±0%)"


def test_join_with_only_a_maximum_joins_up_to_it() -> None:
    found = control_length(of(6, 6, 6, 6), InputLength(max=12, by="join"), count_words)
    assert tokens(found) == [12, 12]


def test_join_takes_one_category_at_a_time_and_then_what_they_have_left() -> None:
    mixed = PromptSet.of(
        "set", "here", [Prompt(f"p{i}", "ab"[i % 2], (words(5),)) for i in range(6)]
    )
    found = control_length(mixed, InputLength(min=10, max=10, by="join"), count_words)
    assert [(prompt.id, prompt.category) for prompt in found.prompts] == [
        ("p0+1", "a"),
        ("p1+1", "b"),
        ("p4+1", "mixed"),
    ]


def test_cutting_a_long_text_counts_few_and_short_parts() -> None:
    counted: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(len(text.split()) for text in texts)
        return count_quads(texts)

    text = " ".join("harbour lights at the quay"[: 7 + i % 19] for i in range(2000))
    cut, length = cut_to_tokens(text, 500, count)
    assert 492 <= length <= 500
    assert len(counted) <= 10
    assert sum(counted[1:]) <= 10 * len(cut.split()) * 1.5


def test_treatments_are_remembered_in_order() -> None:
    once = control_length(of(30, 40), InputLength(min=35), count_words)
    twice = control_length(once, InputLength(max=10, by="cut"), count_words)
    assert twice.treatment == "selection(min=35) cut(max=10)"


def test_without_bounds_the_set_is_only_counted() -> None:
    found = control_length(of(3, 4), InputLength(), count_words)
    assert (found.name, found.treatment, tokens(found)) == ("set", "", [3, 4])


def test_nothing_left_says_which_lengths_there_are() -> None:
    with pytest.raises(
        WorkloadError,
        match=r"no prompt is left after selection\(min=512\); its pro"
        r"mpts have 3 to 9 tokens; use other bounds, by: cut or by: join, or another set",
    ):
        control_length(of(3, 9), InputLength(min=512), count_words)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"min": 0}, "must be 1 or more, got 0"),
        ({"min": 9, "max": 3}, r"min <= max must hold, got \(min=9, max=3\)"),
        ({"exactly": 9, "max": 3}, "either exactly, or min and max"),
        ({"exactly": 9, "tolerance": 1.5}, "tolerance: must be in"),
        ({"min": 9, "by": "cut"}, "cut needs max or exactly"),
    ],
)
def test_bounds_that_cannot_be(bounds: dict[str, object], expected: str) -> None:
    with pytest.raises(WorkloadError, match=expected):
        InputLength(**bounds)  # type: ignore[arg-type]


def test_a_cut_ends_at_a_word() -> None:
    # "harbour" is harb|our, " lights" is " ligh"|ts: five tokens would end inside "flicker".
    text = "harbour lights flicker"
    assert count_quads([text]) == [6]
    assert cut_to_tokens(text, 5, count_quads) == ("harbour lights", 4)


def test_text_without_spaces_is_cut_inside_since_a_word_would_be_everything() -> None:
    text = "码头上的灯昨晚没有亮船长在岸边等了很久"
    assert cut_to_tokens(text, 10, count_quads, shortfall=8) == (text[:10], 10)


def test_a_single_character_that_does_not_fit_leaves_nothing() -> None:
    assert cut_to_tokens("码", 0, count_quads) == ("", 0)


@given(
    st.text(alphabet="ab 码头\n", min_size=1, max_size=200), st.integers(0, 60), st.integers(0, 10)
)
def test_a_cut_is_a_beginning_with_no_more_tokens_than_asked_for(
    text: str, limit: int, shortfall: int
) -> None:
    cut, length = cut_to_tokens(text, limit, count_quads, shortfall=shortfall)
    assert text.startswith(cut)
    assert length <= limit
    assert length == count_quads([cut])[0]
    if cut != text and text.strip():
        assert limit - length <= max(shortfall, 1) + text.count("\n")


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=12),
    st.integers(1, 50),
    st.sampled_from(["selection", "cut", "join"]),
)
def test_whatever_the_way_the_lengths_end_inside_the_bounds(
    lengths: list[int], target: int, by: str
) -> None:
    bounds = InputLength(exactly=target, by=by)  # type: ignore[arg-type]
    try:
        found = control_length(of(*lengths), bounds, count_words)
    except WorkloadError:
        return
    assert all(bounds.allows(len(prompt.turns[0].split())) for prompt in found.prompts)
    used = [word for prompt in found.prompts for word in prompt.turns[0].split()]
    assert len(used) == len(set(used)), "no text is used twice"
