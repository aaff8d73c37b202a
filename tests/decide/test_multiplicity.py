from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.decide.multiplicity import Correction, best_candidate, corrected, rejected
from orchestrator.decide.verdict import Decision, Verdict, decide
from orchestrator.plan.trial import Protocol
from tests.analyse.test_interval import noisy
from tests.decide.test_verdict import series

PROTOCOL = Protocol(pairs_min=6, pairs_max=24)
p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def cell(mean: float, sd: float = 0.04, pairs: int = 12, seed: int = 1) -> Decision:
    return decide(series(noisy(mean, sd, pairs, seed)), PROTOCOL)


def test_benjamini_hochberg_worked_out_by_hand() -> None:
    # Thresholds 0.01, 0.02, 0.03, 0.04, 0.05: the fourth holds, and carries the third with it.
    p = [0.001, 0.035, 0.019, 0.039, 0.6]
    assert rejected(p, 0.05, "benjamini-hochberg") == [True, True, True, True, False]


def test_holm_worked_out_by_hand() -> None:
    # Thresholds 0.01, 0.0125, ...: the second (0.019) fails and ends it.
    p = [0.001, 0.035, 0.019, 0.039, 0.6]
    assert rejected(p, 0.05, "holm") == [True, False, False, False, False]


def test_no_cells_no_calls() -> None:
    assert rejected([], 0.05) == []
    assert corrected({}, confidence=0.95) == {}


def test_what_is_no_p_value_is_refused() -> None:
    with pytest.raises(ValueError, match="0 <= p <= 1"):
        rejected([1.2], 0.05)


@given(p_lists)
def test_holm_never_rejects_what_benjamini_hochberg_keeps(p: list[float]) -> None:
    bh, holm = rejected(p, 0.05, "benjamini-hochberg"), rejected(p, 0.05, "holm")
    assert all(b or not h for b, h in zip(bh, holm, strict=True))
    assert all(not b or x <= 0.05 for b, x in zip(bh, p, strict=True))


@pytest.mark.parametrize("method", ["benjamini-hochberg", "holm"])
def test_among_equal_cells_a_call_is_as_rare_as_for_one(method: Correction) -> None:
    rng = np.random.default_rng(4)
    calls = [any(rejected(list(rng.random(20)), 0.05, method)) for _ in range(2000)]
    # 5 % plus three standard errors of 2,000 sweeps.
    assert np.mean(calls) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_a_lone_narrow_call_among_many_is_withheld_and_says_why() -> None:
    narrow = cell(0.079)
    assert narrow.verdict is Verdict.FASTER
    assert 0.01 < narrow.p_value <= 0.05
    cells = {"narrow": narrow, **{f"even {i}": cell(0.0, seed=i) for i in range(19)}}
    after = corrected(cells, confidence=0.95)
    assert after["narrow"].verdict is Verdict.CANNOT_TELL
    assert after["narrow"].alone is Verdict.FASTER
    assert after["narrow"].further_pairs is not None
    assert after["narrow"].further_pairs > 0
    assert after["narrow"].notes[-1].startswith("faster on its own (p = 0.0")
    assert after["narrow"].speedup == narrow.speedup
    assert all(after[name] is cells[name] for name in cells if name != "narrow")


def test_a_clear_call_survives_among_many() -> None:
    cells = {"clear": cell(0.4), **{f"even {i}": cell(0.0, seed=i) for i in range(19)}}
    assert corrected(cells, confidence=0.95)["clear"].verdict is Verdict.FASTER


def test_equality_is_not_corrected() -> None:
    even = cell(0.0, sd=0.005)
    assert even.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    assert corrected({"even": even}, confidence=0.95) == {"even": even}


def test_the_best_candidate_has_the_best_lower_end_not_the_largest_estimate() -> None:
    sure, lucky = cell(0.30, sd=0.01), cell(0.35, sd=0.12)
    assert lucky.verdict is sure.verdict is Verdict.FASTER
    assert (lucky.speedup or 0) > (sure.speedup or 0)
    assert best_candidate({"lucky": lucky, "sure": sure, "slow": cell(-0.3)}) == "sure"


def test_without_a_faster_cell_there_is_nothing_to_confirm() -> None:
    assert best_candidate({"slow": cell(-0.3), "even": cell(0.0)}) is None
    assert best_candidate({}) is None
