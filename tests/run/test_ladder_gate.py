"""Which rungs are not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.plan.ladder import ladder_key, load_level
from orchestrator.plan.trial import LoadPoint, Trial
from orchestrator.records import Arm, FailureClass, Outcome
from orchestrator.run.ladder_gate import RungOutcome, skip_reason, skipped
from tests.run.fakes import trial

BOTH: dict[Arm, str] = {"baseline": "20% stay", "speculative": "10% stay"}


def at(load: LoadPoint, *, k: int = 4, seed: int = 0) -> Trial:
    base = trial(k=k, seed=seed)
    return replace(base, cell=replace(base.cell, load=load, batch_size=load.concurrency or 8))


def rps(rate: float, **more: Any) -> Trial:
    return at(LoadPoint("open", rate_rps=rate), **more)


def ended(
    rung: Trial, failure: FailureClass | None = None, saturated: Mapping[Arm, str] | None = None
) -> RungOutcome:
    status = "finished" if failure is None else "failed"
    outcome = Outcome(rung.id, status, failure, "no room" if failure else None)  # type: ignore[arg-type]
    return RungOutcome(rung, outcome, saturated or {})


def test_the_first_rung_is_always_run() -> None:
    assert skip_reason(rps(1), []) is None


def test_above_a_rung_that_saturated_both_arms() -> None:
    reason = skip_reason(rps(4), [ended(rps(1)), ended(rps(2), saturated=BOTH)])
    assert reason == (
        "not run: both arms were saturated below: baseline at 2 rps (20% stay); "
        "speculative at 2 rps (10% stay)"
    )


def test_an_arm_that_keeps_up_has_its_knee_ahead() -> None:
    """Speculation may carry what the baseline does not: the rung is run for it."""
    one = ended(rps(2), saturated={"baseline": "20% stay"})
    assert skip_reason(rps(4), [one]) is None
    other = ended(rps(3), saturated=BOTH)
    reason = skip_reason(rps(4), [other, one])
    assert reason is not None and "baseline at 2 rps" in reason and "speculative at 3 rps" in reason


@pytest.mark.parametrize(
    ("failure", "skips"),
    [
        (FailureClass.OUT_OF_MEMORY, True),
        (FailureClass.UNRESPONSIVE, True),
        (FailureClass.ALL_REQUESTS_FAILED, True),
        (FailureClass.CRASHED, False),
        (FailureClass.CLIENT_FAILED, False),
        (FailureClass.NO_VALID_PAIRS, False),
    ],
)
def test_above_a_rung_that_failed(failure: FailureClass, skips: bool) -> None:
    reason = skip_reason(rps(4), [ended(rps(2), failure)])
    assert (reason is not None) is skips
    if reason is not None:
        assert reason == f"not run: the rung at 2 rps failed ({failure}: no room)"


def test_only_lower_rungs_of_the_same_ladder_count() -> None:
    lost = [
        ended(rps(4), saturated=BOTH),  # the rung itself
        ended(rps(8), saturated=BOTH),  # higher
        ended(rps(2, k=2), saturated=BOTH),  # another speculative arm
        ended(at(LoadPoint("open", rate_rps=2, arrivals="constant")), saturated=BOTH),
        ended(at(LoadPoint("closed", concurrency=2)), saturated=BOTH),
    ]
    assert skip_reason(rps(4), lost) is None


def test_rungs_of_one_ladder_have_one_key() -> None:
    closed = [at(LoadPoint("closed", concurrency=n), seed=n) for n in (1, 4, 16)]
    assert len({ladder_key(rung) for rung in closed}) == 1
    assert len({rung.id for rung in closed}) == 3


def test_traces_played_faster_are_a_ladder() -> None:
    slow, fast = (
        at(LoadPoint("open", arrivals="trace", trace_hash="t", time_scale=s)) for s in (1.0, 0.5)
    )
    assert ladder_key(slow) == ladder_key(fast)
    assert (load_level(slow.cell.load), load_level(fast.cell.load)) == (1.0, 2.0)


def test_a_load_must_say_how_much() -> None:
    with pytest.raises(ValueError, match="needs a load > 0"):
        load_level(LoadPoint("open"))


def test_the_outcome_of_a_rung_that_was_not_run() -> None:
    outcome = skipped(rps(4), "not run: saturated below")
    assert (outcome.status, outcome.pairs_measured) == ("stopped", 0)
    assert outcome.cause == "not run: saturated below"
