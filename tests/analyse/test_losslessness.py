"""Lossless, equal up to ties, not lossless, cannot tell: what each needs."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.agreement import Agreement, Answer, agreement
from orchestrator.analyse.divergence import Cause, Margin, triage, triage_all
from orchestrator.analyse.losslessness import (
    Floor,
    Losslessness,
    compare_with_floor,
    losslessness,
)

NEAR = 0.25
PROMPTS = [f"p{i}" for i in range(100)]


def arm(diverging: int, *, of: int = 100, first: int = 0, name: str = "speculative") -> Agreement:
    """`diverging` prompts, from number `first`, part at their third token."""
    baseline = [Answer(p, "abcd", (1, 2, 3, 4)) for p in PROMPTS[:of]]
    other = [
        Answer(a.prompt_id, "abxd", (1, 2, 9, 4)) if first <= i < first + diverging else a
        for i, a in enumerate(baseline)
    ]
    return agreement(baseline, other, name=name)


TIE, NEAR_TIE = Margin(-0.9, -0.9), Margin(-0.7, -0.8)
REAL = Margin(-0.1, -2.6)


# --- triage: the target's own margin at the divergence


@pytest.mark.parametrize(
    ("margin", "cause"),
    [
        (Margin(-0.9, -0.9), Cause.EXACT_TIE),
        (Margin(-0.7, -0.8), Cause.NEAR_TIE),
        (Margin(-0.8, -0.7), Cause.NEAR_TIE),  # the second pass prefers the other by a little
        (Margin(-0.70, -0.95), Cause.NEAR_TIE),  # 0.25 nats: within
        (Margin(-0.70, -0.96), Cause.REAL),
        (Margin(-0.1, -np.inf), Cause.REAL),
        # Both tokens are far below a third one: the second pass is not of this run.
        (Margin(-3.0, -3.0, top_logprob=-0.1), Cause.NOT_TRIAGED),
        (Margin(-3.0, -0.1), Cause.NOT_TRIAGED),
        (None, Cause.NOT_TRIAGED),
    ],
)
def test_triage(margin: Margin | None, cause: Cause) -> None:
    assert triage(arm(1).diverged[0], margin, NEAR).cause is cause


def test_the_margin_is_in_nats() -> None:
    # p = 0.5 against p = 0.25: ln 2.
    assert Margin(np.log(0.5), np.log(0.25)).nats == pytest.approx(np.log(2))


@given(st.floats(-20, 0), st.floats(-20, 0), st.floats(0.001, 2))
def test_a_wider_tolerance_never_makes_a_tie_real(a: float, b: float, near: float) -> None:
    prompt = arm(1).diverged[0]
    if triage(prompt, Margin(a, b), near).cause in (Cause.NEAR_TIE, Cause.EXACT_TIE):
        assert triage(prompt, Margin(a, b), 2 * near).cause in (Cause.NEAR_TIE, Cause.EXACT_TIE)


def test_equal_tokens_with_unequal_text_are_real_whatever_the_margin() -> None:
    found = agreement([Answer("p", "né", (1,))], [Answer("p", "n", (1,))], name="s")
    assert triage(found.diverged[0], None, NEAR).cause is Cause.REAL


def test_margins_of_another_run_are_refused() -> None:
    with pytest.raises(ValueError, match="'p50'; were they read for another run"):
        triage_all(arm(1), {"p50": TIE}, NEAR)
    with pytest.raises(ValueError, match="must be <= 0"):
        Margin(0.7, -1)


# --- the verdict


def test_all_equal_is_lossless_and_says_what_may_still_hide() -> None:
    report = losslessness(arm(0))
    assert report.verdict is Losslessness.LOSSLESS
    # 1 − 0.05^(1/100)
    assert report.reasons == (
        "all 100 prompts are equal; at 95 % confidence fewer than 3.0% of such prompts diverge",
    )


def test_equal_answers_to_a_few_prompts_are_not_enough() -> None:
    report = losslessness(arm(0, of=19))
    assert report.verdict is Losslessness.CANNOT_TELL
    assert "at least 20" in report.reasons[0]
    assert losslessness(arm(0, of=20)).verdict is Losslessness.LOSSLESS


def test_ties_only_are_equal_up_to_ties_however_many() -> None:
    margins = {p: TIE if i % 2 else NEAR_TIE for i, p in enumerate(PROMPTS[:40])}
    report = losslessness(arm(40), [Floor(arm(0, name="relaunched"), True)], margins=margins)
    assert report.verdict is Losslessness.EQUAL_UP_TO_TIES
    assert (report.count(Cause.EXACT_TIE), report.count(Cause.NEAR_TIE)) == (20, 20)


def test_one_real_divergence_convicts_and_is_named() -> None:
    report = losslessness(arm(2), margins={"p0": TIE, "p1": REAL})
    assert report.verdict is Losslessness.NOT_LOSSLESS
    assert [d.prompt_id for d in report.offending] == ["p1"]
    assert report.offending[0].why == "its token is 2.5 nats below the most probable one"


def test_a_baseline_that_does_not_reproduce_itself_convicts_nobody() -> None:
    floor = Floor(arm(3, first=50, name="relaunched"), True, {f"p{i}": REAL for i in (50, 51, 52)})
    report = losslessness(arm(2), [floor], margins={"p0": REAL, "p1": REAL})
    assert report.verdict is Losslessness.CANNOT_TELL
    # But 20 real ones against 3 do: McNemar 20 against 3.
    many = dict.fromkeys(PROMPTS[:20], REAL)
    assert losslessness(arm(20), [floor], margins=many).verdict is Losslessness.NOT_LOSSLESS


def test_without_margins_the_floor_at_another_batch_size_decides() -> None:
    relaunched = Floor(arm(0, name="relaunched"), True)
    batch = Floor(arm(2, first=0, name="batch 1"), False)
    # Six more prompts than the floor are 1/64 > 0.01, eight more are 1/256.
    assert losslessness(arm(8), [relaunched, batch]).verdict is Losslessness.CANNOT_TELL
    report = losslessness(arm(10), [relaunched, batch])
    assert report.verdict is Losslessness.NOT_LOSSLESS
    assert len(report.offending) == 10
    assert [f.p_value for f in report.floors] == pytest.approx([2**-10, 2**-8])


def test_without_margins_a_relaunch_alone_does_not_convict() -> None:
    # Verifying several tokens at once changes the order of summation, a relaunch does not.
    report = losslessness(arm(30), [Floor(arm(0, name="relaunched"), True)])
    assert report.verdict is Losslessness.CANNOT_TELL
    assert "run the second pass" in report.reasons[0]
    assert losslessness(arm(30)).verdict is Losslessness.CANNOT_TELL


def test_one_untriaged_divergence_among_ties_is_not_called_a_tie() -> None:
    report = losslessness(arm(3), margins={"p0": TIE, "p1": TIE})
    assert report.verdict is Losslessness.CANNOT_TELL


def test_a_floor_on_other_prompts_is_compared_by_fisher() -> None:
    floor = Agreement("batch 1", arm(1, first=60).prompts[50:], ())
    found = compare_with_floor(Agreement("s", arm(12).prompts[:50], ()), Floor(floor, False))
    assert found.test == "Fisher, one-sided"
    # 13 prompts diverged among 100; 12 or 13 of them among the arm's 50.
    by_hand = (comb(50, 12) * comb(50, 1) + comb(50, 13)) / comb(100, 13)
    assert found.p_value == pytest.approx(by_hand)


def test_a_text_comparison_says_so() -> None:
    pairs = [[Answer(p, "same") for p in PROMPTS[:30]]] * 2
    report = losslessness(agreement(*pairs, name="s"))
    assert report.verdict is Losslessness.LOSSLESS
    assert "characters" in report.reasons[-1]


def test_an_equal_arm_is_convicted_by_its_rate_at_most_at_the_level() -> None:
    # Both arms flip the same near ties independently: 30 % of prompts have one, each flips half.
    rng = np.random.default_rng(5)
    convicted = 0
    for _ in range(200):
        tied = rng.random(100) < 0.3
        mine, its = (tied & (rng.random(100) < 0.5) for _ in range(2))
        verdict = losslessness(_with(mine, "s"), [Floor(_with(its, "b"), False)]).verdict
        convicted += verdict is Losslessness.NOT_LOSSLESS
    # Level 0.01: at most 7 of 200 with a chance of 99.9 %.
    assert convicted <= 7


def _with(flags: np.ndarray, name: str) -> Agreement:
    same, other = arm(0), arm(100)
    prompts = tuple(
        other.prompts[i] if flag else same.prompts[i] for i, flag in enumerate(flags.tolist())
    )
    return Agreement(name, prompts, ())
