"""Token by token: where do two sets of answers part?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.agreement import Answer, agreement, answer_of, compare, first_divergence
from orchestrator.records import RequestError, RequestRecord

TOKENS = st.lists(st.integers(0, 3), max_size=6)


def answer(prompt: str, *tokens: int, text: str | None = None) -> Answer:
    return Answer(
        prompt, "".join(map(chr, (97 + t for t in tokens))) if text is None else text, tokens
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([5, 7, 9], [5, 7, 9], None),
        ([5, 7, 9], [5, 8, 9], 1),
        ([5, 7], [5, 7, 9], 2),  # an end differs from any token
        ([], [5], 0),
        ([], [], None),
    ],
)
def test_first_divergence(one: list[int], other: list[int], expected: int | None) -> None:
    assert first_divergence(one, other) == expected


@given(TOKENS, TOKENS)
def test_it_is_symmetric_and_the_common_part_ends_there(one: list[int], other: list[int]) -> None:
    at = first_divergence(one, other)
    assert at == first_divergence(other, one)
    assert (at is None) == (one == other)
    if at is not None:
        assert one[:at] == other[:at]
        assert one[at : at + 1] != other[at : at + 1]


def test_two_of_three_prompts_equal() -> None:
    found = agreement(
        [answer("a", 1, 2, 3), answer("b", 1, 2, 3), answer("c", 4)],
        [answer("a", 1, 2, 3), answer("b", 1, 0, 3), answer("c", 4)],
        name="speculative",
    )
    assert found.exact_match_rate == pytest.approx(2 / 3)
    assert [
        (p.prompt_id, p.first_divergence, p.baseline_at, p.other_at) for p in found.diverged
    ] == [("b", 1, 2, 0)]
    # 3 + 2 + 1 tokens were compared while still together, one of them differed.
    assert found.divergences_per_1k_tokens == pytest.approx(1000 / 6)


def test_a_prompt_that_one_arm_did_not_answer_is_missing_not_different() -> None:
    found = agreement([answer("a", 1), answer("b", 2)], [answer("a", 1), answer("c", 1)], name="x")
    assert (found.exact_match_rate, found.missing) == (1.0, ("b", "c"))


def test_nothing_in_common_has_no_rate() -> None:
    found = agreement([answer("a", 1)], [answer("b", 1)], name="x")
    assert found.exact_match_rate is None
    assert found.exact_match_interval() is None
    assert found.divergences_per_1k_tokens is None


def test_without_token_ids_on_both_sides_the_text_is_compared() -> None:
    found = compare(answer("a", 1, 2, text="the cat"), Answer("a", "the car"))
    assert (found.unit, found.first_divergence, found.baseline_at, found.other_at) == (
        "character", 6, "t", "r",
    )  # fmt: skip


def test_equal_tokens_with_unequal_text_are_not_equal() -> None:
    found = compare(answer("a", 1, 2, text="né"), answer("a", 1, 2, text="n\ufffd"))
    assert found.first_divergence is None
    assert not found.equal


def test_two_answers_to_one_prompt_are_refused() -> None:
    with pytest.raises(ValueError, match="baseline: one answer a prompt, got two for 'a'"):
        agreement([answer("a", 1), answer("a", 1)], [answer("a", 1)], name="x")


def test_answers_from_records() -> None:
    def record(turn: int, error: RequestError | None = None) -> RequestRecord:
        return RequestRecord(
            "r", "p", "c", turn, None, 0.0, (), None, 1.0, 1, 1, 8, "stop", "hi", (7,), error=error
        )

    assert answer_of(record(0)) == Answer("p", "hi", (7,), "stop")
    second = answer_of(record(1))
    assert second is not None and second.prompt_id == "p turn 2"
    assert answer_of(record(0, RequestError.RESET)) is None
