"""A rung from its trial's pairs and blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import betaincinv, stdtrit

from orchestrator.analyse.interval import repeated_interval
from orchestrator.analyse.look_plan import look_plan
from orchestrator.analyse.pairs import SPEEDUPS, Pair, ratio_series
from orchestrator.analyse.rung import ArmAtRung, Estimate, Rung
from orchestrator.analyse.saturation import (
    Regime,
    Saturation,
    achieved_over_offered,
    saturation_closed,
    saturation_open,
)
from orchestrator.measure.block import BlockFigures
from orchestrator.plan.trial import LoadPoint, Protocol, Trial
from orchestrator.records import ARMS, Arm, BlockRecord, RequestRecord

Blocks = tuple[BlockRecord, BlockRecord]
"""(baseline block, speculative block)"""


def rung_of(
    trial: Trial,
    measured: Sequence[tuple[Pair, Blocks]],
    *,
    engine_cap: int | None = None,
    skipped: str | None = None,
) -> Rung:
    """The rung that a trial measured.

    Figures and speedups are those of the valid pairs; whether an arm was saturated is judged from
    every block of its own that is valid, since a rung that ended early has few pairs that count.
    An arm without a valid block is absent.
    """
    protocol = trial.protocol
    load = trial.cell.load
    arms = {arm: _arm(arm, load, measured, engine_cap, protocol.confidence) for arm in ARMS}
    return Rung(
        load=load,
        arms={arm: at for arm, at in arms.items() if at is not None},
        speedups=dict(_speedups([pair for pair, _ in measured], protocol)),
        skipped=skipped,
    )


def _speedups(pairs: Sequence[Pair], protocol: Protocol) -> Iterable[tuple[str, Estimate]]:
    for metric in SPEEDUPS:
        used = ratio_series(pairs, metric).up_to(protocol.pairs_max).log_ratios
        interval = repeated_interval(used, look_plan(protocol, len(used)))
        if interval is not None:
            yield metric, Estimate.of(interval)


def _arm(
    arm: Arm,
    load: LoadPoint,
    measured: Sequence[tuple[Pair, Blocks]],
    engine_cap: int | None,
    confidence: float,
) -> ArmAtRung | None:
    which = ARMS.index(arm)
    given_up = [each for _, blocks in measured if (each := blocks[which].ended_early) is not None]
    valid = [blocks[which].requests for pair, blocks in measured if not pair.findings[arm]]
    if not valid and not given_up:
        return None
    figures = [
        pair.baseline if arm == "baseline" else pair.speculative
        for pair, _ in measured
        if pair.valid
    ]
    return ArmAtRung(
        attainment=_attainment(figures, confidence),
        achieved_over_offered=achieved_over_offered(valid),
        output_tok_per_s=positive_mean((f.output_tok_per_s for f in figures), confidence),
        ttft_s=positive_mean((f.mean("ttft_s") for f in figures), confidence),
        tpot_s=positive_mean((f.mean("tpot_s") for f in figures), confidence),
        e2e_s=positive_mean((f.mean("e2e_s") for f in figures), confidence),
        saturation=(
            Saturation(Regime.SATURATED, given_up[0])
            if 2 * len(given_up) >= len(measured)
            else _saturation(load, valid, engine_cap)
        ),
    )


def _saturation(
    load: LoadPoint, blocks: Sequence[Sequence[RequestRecord]], engine_cap: int | None
) -> Saturation | None:
    if load.mode == "open":
        return saturation_open(blocks)
    return None if load.concurrency is None else saturation_closed(load.concurrency, engine_cap)


def positive_mean(values: Iterable[float | None], confidence: float) -> Estimate | None:
    """Geometric mean of a figure over blocks, with its t-interval on the log scale.

    Undefined: None without a block that has it; with one block the interval is [0, inf].
    """
    logs = np.log([value for value in values if value is not None and value > 0])
    if logs.size == 0:
        return None
    mean = float(logs.mean())
    if logs.size == 1:
        return Estimate(math.exp(mean), 0.0, math.inf)
    error = float(logs.std(ddof=1)) / math.sqrt(logs.size)
    reach = float(stdtrit(logs.size - 1, (1 + confidence) / 2)) * error
    return Estimate(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def proportion(count: int, of: int, confidence: float) -> Estimate:
    """A share with its interval, of independent trials. Source: Clopper & Pearson 1934."""
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, of - count + 1, tail))
    high = 1.0 if count == of else float(betaincinv(count + 1, of - count, 1 - tail))
    return Estimate(count / of, low, high)


def _attainment(figures: Sequence[BlockFigures], confidence: float) -> Estimate | None:
    """Formula: requests that met every bound / requests planned, over all blocks."""
    known = [(f.slo_attainment, f.requests_planned) for f in figures]
    shares = [(share, planned) for share, planned in known if share is not None]
    if not shares:
        return None
    met = round(math.fsum(share * planned for share, planned in shares))
    return proportion(met, sum(planned for _, planned in shares), confidence)
