"""Which looks a protocol pays for."""

from __future__ import annotations

from orchestrator.analyse.boundaries import LookPlan
from orchestrator.plan.trial import Protocol


def look_plan(protocol: Protocol, pairs: int) -> LookPlan:
    """The plan under which `pairs` pairs that count are judged.

    `looks="every"`: after every pair from pairs_min to pairs_max, all of them paid for.
    `looks="once"`: at the end alone, so one look, at however many pairs there are then. What ends
    such a trial is pairs_max or trial_seconds, never a ratio, so the look needs no correction.
    Source: a stopping rule that does not depend on the estimate leaves its distribution as it is
    (Jennison & Turnbull 2000, Group Sequential Methods, ch. 1).
    """
    if protocol.looks == "every":
        return LookPlan(protocol.confidence, protocol.pairs_min, protocol.pairs_max)
    at = min(max(pairs, 2), protocol.pairs_max)
    return LookPlan(protocol.confidence, at, at)
