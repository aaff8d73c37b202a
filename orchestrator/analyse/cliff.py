"""Abrupt losses between neighbouring rungs, and the load from which more brings no more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.analyse.rung import Estimate, Rung, difference, in_order, ratio
from orchestrator.records import ARMS, Arm

CLIFF_DROP = 0.20
"""A loss counts as abrupt when its whole interval is beyond this."""
PLATEAU_GAIN = 0.10
"""A stream more must bring a tenth of what a stream brought at the lowest rung."""


@dataclass(frozen=True, slots=True)
class Cliff:
    """Between two neighbouring rungs something fell abruptly."""

    what: str
    """METRICS name."""
    arm: Arm | None
    """None for a speedup, which is of both."""
    below: float
    above: float
    """Loads before and after."""
    change: Estimate
    """What is left: 0.5 = half. For `slo_attainment` the difference: -0.5 = half the requests."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """From this load on further streams bring (nearly) nothing."""

    arm: Arm
    load: float | None
    gain: Estimate | None
    """Of the step after it: throughput per added stream / per stream at the lowest rung."""
    why: str


def cliffs(rungs: Iterable[Rung]) -> tuple[Cliff, ...]:
    """Every abrupt loss between neighbouring rungs that were measured, lowest first.

    Rule: with Q the ratio of the upper rung to the lower one, and L the ratio of their loads,
        output_tok_per_s, speedup_*:  Q < 1 - 20 %
        ttft_s, tpot_s, e2e_s:        L / Q < 1 - 20 %, i.e. the latency grew by more than the load
                                      explains (with a full queue it grows as the load does)
        slo_attainment:               difference < -20 % of the requests
    each for the whole interval of Q (two rungs are independent), so that noise is no cliff.
    Undefined figures, and rungs that were not run, make no cliff.
    """
    measured = [rung for rung in in_order(rungs) if rung.arms or rung.speedups]
    return tuple(
        cliff
        for below, above in itertools.pairwise(measured)
        for cliff in _changes(below, above)
        if cliff.change.high < (-CLIFF_DROP if cliff.what == "slo_attainment" else 1 - CLIFF_DROP)
    )


def _changes(below: Rung, above: Rung) -> Iterator[Cliff]:
    ends = below.offered, above.offered
    grown = Estimate.exactly(above.offered / below.offered)
    for arm in ARMS:
        if arm not in below.arms or arm not in above.arms:
            continue
        before, after = below.arms[arm], above.arms[arm]
        if before.attainment is not None and after.attainment is not None:
            lost = difference(after.attainment, before.attainment)
            yield Cliff("slo_attainment", arm, *ends, lost)
        left = _ratio(after.output_tok_per_s, before.output_tok_per_s)
        if left is not None:
            yield Cliff("output_tok_per_s", arm, *ends, left)
        for name in ("ttft_s", "tpot_s", "e2e_s"):
            slower = _ratio(getattr(after, name), getattr(before, name))
            if slower is not None:
                yield Cliff(name, arm, *ends, ratio(grown, slower))
    for name, after_speedup in above.speedups.items():
        left = _ratio(after_speedup, below.speedups.get(name))
        if left is not None:
            yield Cliff(name, None, *ends, left)


def _ratio(above: Estimate | None, below: Estimate | None) -> Estimate | None:
    if above is None or below is None or above.low <= 0 or below.low <= 0:
        return None
    return ratio(above, below)


def plateau(rungs: Iterable[Rung], arm: Arm) -> Plateau:
    """The lowest number of streams from which more streams bring nearly no more throughput.

    Formula: gain of the step from c1 to c2 streams = ((T2 - T1) / (c2 - c1)) / (T0 / c0), with T
        the output tokens/s and 0 the lowest rung. The plateau begins at the lowest c1 for which the
        whole interval of the gain is below 10 %, and no later step is, as a whole, above it.
    The interval is that of the difference T2 - T1; T0 only sets the scale, and is taken as it is.
    Undefined (None): open loop (its throughput is what was offered), or no such step.
    """
    ordered = in_order(rungs)
    if any(rung.load.mode == "open" for rung in ordered):
        return Plateau(arm, None, None, "an open loop delivers what is offered; see the knee")
    known = [
        (rung.offered, tokens)
        for rung in ordered
        if arm in rung.arms and (tokens := rung.arms[arm].output_tok_per_s) is not None
    ]
    if len(known) < 2 or known[0][1].value <= 0:
        return Plateau(arm, None, None, "fewer than two rungs have a throughput")
    per_stream = known[0][1].value / known[0][0]
    gains = []
    for (c1, before), (c2, after) in itertools.pairwise(known):
        step, scale = difference(after, before), (c2 - c1) * per_stream
        gains.append((c1, Estimate(step.value / scale, step.low / scale, step.high / scale)))
    for i, (load, gain) in enumerate(gains):
        if gain.high < PLATEAU_GAIN and all(g.low <= PLATEAU_GAIN for _, g in gains[i:]):
            why = f"beyond {load:g} in flight a stream more brings {gain.value:.0%} of the first"
            return Plateau(arm, load, gain, why)
    last = gains[-1][1]
    if last.value < PLATEAU_GAIN:
        why = f"the last step's gain, {last}, is not told from {PLATEAU_GAIN:g}"
    else:
        why = "throughput still grows at the highest measured rung"
    return Plateau(arm, None, None, why)
