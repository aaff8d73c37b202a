"""Pairs of blocks: the ratio is taken pair by pair, on the log scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.measure.block import BlockFigures, block_figures, request_key
from orchestrator.measure.slo import SloBounds
from orchestrator.measure.validity import Finding, ValidityBounds, invalid_reasons
from orchestrator.records import Arm, BlockRecord

SPEEDUPS = ("speedup_throughput", "speedup_tpot", "speedup_e2e", "speedup_ttft")

LENGTH_TOLERANCE = 0.10
"""`speedup_e2e` compares answers; past this difference in mean length it is not the same work."""
COMMON_SHARE_MIN = 0.5
"""A pair in which fewer of the planned requests completed in both arms compares survivors."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One baseline block and its speculative block, in numbers."""

    index: int
    baseline_first: bool
    baseline: BlockFigures
    speculative: BlockFigures
    findings: Mapping[Arm, tuple[Finding, ...]]
    log_ratios: Mapping[str, float]
    """By `speedup_*`; above 0 speculation is better. A name is absent where it is undefined."""
    common_requests: int
    """Requests that completed in both arms: the ones whose latencies are compared."""
    output_length_ratio: float | None
    """Mean output length of the common requests, speculative / baseline."""
    refusals: tuple[str, ...]
    """Why the pair does not count though both blocks are valid."""

    @property
    def valid(self) -> bool:
        return not self.refusals and not any(self.findings.values())

    def why_invalid(self) -> tuple[str, ...]:
        """Every reason in words; empty when the pair counts."""
        blocks = (f"{arm} block: {f}" for arm, found in self.findings.items() for f in found)
        return (*blocks, *self.refusals)


def pair_of(
    baseline: BlockRecord,
    speculative: BlockRecord,
    *,
    bounds: ValidityBounds | None = None,
    slo: SloBounds | None = None,
    fixed_length: bool = False,
) -> Pair:
    """The figures and log ratios of a pair of blocks.

    Latencies are compared over the requests that completed in both arms, so that an arm gains
    nothing by failing its slow ones; throughput is what each block delivered in its whole time, so
    that failures cost the arm that had them.
    Raises: ValueError when the blocks are not the two arms of one pair.
    """
    if (baseline.arm, speculative.arm) != ("baseline", "speculative") or (
        baseline.pair_index != speculative.pair_index
    ):
        raise ValueError(
            "a pair is a baseline block and the speculative block of the same index, but got "
            f"({baseline.arm} {baseline.pair_index}, {speculative.arm} {speculative.pair_index})"
        )
    common = _completed(baseline) & _completed(speculative)
    figures = [block_figures(block, slo, latencies_of=common) for block in (baseline, speculative)]
    planned = max(len(baseline.requests), len(speculative.requests))
    refusals = []
    if len(common) < COMMON_SHARE_MIN * planned:
        refusals.append(
            f"{len(common)} of {planned} requests completed in both arms; "
            f"at least {COMMON_SHARE_MIN:.0%} must"
        )
    return Pair(
        index=baseline.pair_index,
        baseline_first=baseline.position < speculative.position,
        baseline=figures[0],
        speculative=figures[1],
        findings={
            block.arm: invalid_reasons(block, bounds, fixed_length=fixed_length)
            for block in (baseline, speculative)
        },
        log_ratios=log_ratios(figures[0], figures[1]),
        common_requests=len(common),
        output_length_ratio=_ratio(figures[1].mean_output_tokens, figures[0].mean_output_tokens),
        refusals=tuple(refusals),
    )


def log_ratios(baseline: BlockFigures, speculative: BlockFigures) -> dict[str, float]:
    """Natural log of every speedup of a pair; above 0 speculation is better.

    Formula:
        speedup_throughput = output_tok_per_s, speculative / baseline
        speedup_tpot, speedup_e2e, speedup_ttft = mean latency, baseline / speculative
    Undefined (name absent): either side undefined or 0; `speedup_e2e` also when the mean output
        lengths differ by more than 10 % (an answer of half the length is not twice as fast).
    """
    lengths = _ratio(speculative.mean_output_tokens, baseline.mean_output_tokens)
    same_work = lengths is None or abs(math.log(lengths)) <= math.log(1 + LENGTH_TOLERANCE)
    ratios = {
        "speedup_throughput": _ratio(speculative.output_tok_per_s, baseline.output_tok_per_s),
        "speedup_tpot": _ratio(baseline.mean("tpot_s"), speculative.mean("tpot_s")),
        "speedup_e2e": (
            _ratio(baseline.mean("e2e_s"), speculative.mean("e2e_s")) if same_work else None
        ),
        "speedup_ttft": _ratio(baseline.mean("ttft_s"), speculative.mean("ttft_s")),
    }
    return {name: math.log(ratio) for name, ratio in ratios.items() if ratio is not None}


@dataclass(frozen=True, slots=True)
class RatioSeries:
    """The log ratios of one metric over the pairs that count, in the order they were measured."""

    metric: str
    log_ratios: tuple[float, ...]
    baseline_first: tuple[bool, ...]
    pair_indices: tuple[int, ...]
    left_out: int
    """Pairs that do not count: invalid, or the metric undefined in them."""

    def up_to(self, pairs: int) -> RatioSeries:
        """The first `pairs` of them."""
        return RatioSeries(
            self.metric,
            self.log_ratios[:pairs],
            self.baseline_first[:pairs],
            self.pair_indices[:pairs],
            self.left_out,
        )


def ratio_series(pairs: Iterable[Pair], metric: str) -> RatioSeries:
    """Raises: ValueError for a metric that is not one of `SPEEDUPS`."""
    if metric not in SPEEDUPS:
        raise ValueError(f"metric: must be one of {', '.join(SPEEDUPS)}, but got {metric!r}")
    ordered: Sequence[Pair] = sorted(pairs, key=lambda pair: pair.index)
    counted = [pair for pair in ordered if pair.valid and metric in pair.log_ratios]
    return RatioSeries(
        metric=metric,
        log_ratios=tuple(pair.log_ratios[metric] for pair in counted),
        baseline_first=tuple(pair.baseline_first for pair in counted),
        pair_indices=tuple(pair.index for pair in counted),
        left_out=len(ordered) - len(counted),
    )


def _completed(block: BlockRecord) -> frozenset[tuple[str, int]]:
    return frozenset(request_key(request) for request in block.requests if request.completed)


def _ratio(above: float | None, below: float | None) -> float | None:
    if above is None or below is None or above <= 0 or below <= 0:
        return None
    return above / below
