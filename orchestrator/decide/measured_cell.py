"""A cell as it is kept for a comparison with another sweep, in memory or in a decision file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.analyse.pairs import SPEEDUPS, Pair
from orchestrator.analyse.rung import Estimate
from orchestrator.analyse.rung_figures import positive_mean
from orchestrator.decide.standing import cell_at
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.measure.block import BlockFigures
from orchestrator.plan.identity import content_hash
from orchestrator.plan.trial import Trial

HIGHER_IS_BETTER = ("output_tok_per_s", "acceptance_length", *SPEEDUPS)
OF_AN_ARM = ("output_tok_per_s", "ttft_s", "tpot_s", "e2e_s")
DECIDES = {
    "speedup_throughput": "output_tok_per_s",
    "speedup_tpot": "tpot_s",
    "speedup_e2e": "e2e_s",
    "speedup_ttft": "ttft_s",
}
"""By headline speedup: the speculative arm's own figure that goes with it."""


@dataclass(frozen=True)
class MeasuredCell:
    """What one cell measured. Figures are named `speedup_tpot` or `<arm>/tpot_s`."""

    key: str
    """Equal for cells that may be compared: the same point of the grid, whatever the engine,
    target, device and prompts are."""
    label: str
    trial_id: str
    metric: str
    margin: float
    confidence: float
    standing: str
    """`decide.standing.Standing`, after correction."""
    failure: str | None
    prompts_hash: str
    figures: Mapping[str, Estimate]
    """Geometric means over valid pairs with their intervals."""
    series: Mapping[str, Mapping[str, float]]
    """By figure: natural log by what was asked (`TrialResult.pair_prompts`), valid pairs only."""


def cell_key(trial: Trial) -> str:
    """Names the point of the grid: what varies within a sweep, and how much is answered."""
    cell = trial.cell
    speculation = trial.pair.speculative.speculation
    return content_hash(
        {
            "method": cell.method,
            "draft": cell.draft,
            "speculation_length": cell.speculation_length,
            "options": {} if speculation is None else speculation.as_dict()["options"],
            "batch_size": cell.batch_size,
            "sampling": asdict(cell.sampling),
            "load": asdict(cell.load),
            "workload": [
                cell.workload.name,
                cell.workload.output_tokens,
                cell.workload.fixed_length,
                cell.workload.endpoint,
            ],
        }
    )


def measured_cells(result: SweepResult) -> tuple[MeasuredCell, ...]:
    """Every comparison of a sweep, in the plan's order."""
    return tuple(measured_cell(result, trial) for trial in result.trials)


def measured_cell(result: SweepResult, trial: TrialResult) -> MeasuredCell:
    protocol = trial.trial.protocol
    valid = [
        (asked, pair) for asked, pair in zip(_asked(trial), trial.pairs, strict=True) if pair.valid
    ]
    series: dict[str, dict[str, float]] = {}
    for asked, pair in valid:
        for name, value in _logs(pair):
            series.setdefault(name, {})[asked] = value
    figures = {
        name: found
        for name, logs in series.items()
        if (found := positive_mean((math.exp(x) for x in logs.values()), protocol.confidence))
        and math.isfinite(found.high)
    }
    for name in SPEEDUPS:  # their own intervals allow for every look
        interval = trial.decisions[name].interval
        if interval is not None:
            figures[name] = Estimate.of(interval)
        else:
            figures.pop(name, None)
    outcome = trial.outcome
    return MeasuredCell(
        key=cell_key(trial.trial),
        label=trial.trial.cell.label(),
        trial_id=trial.trial.id,
        metric=protocol.metric,
        margin=protocol.margin,
        confidence=protocol.confidence,
        standing=str(cell_at(result, trial).standing),
        failure=None if outcome is None or outcome.failure is None else str(outcome.failure),
        prompts_hash=trial.trial.cell.workload.prompts_hash,
        figures=figures,
        series=series,
    )


def _asked(trial: TrialResult) -> tuple[str, ...]:
    """A trial whose records do not say what was asked has pairs of its own."""
    if len(trial.pair_prompts) == len(trial.pairs):
        return trial.pair_prompts
    return tuple(f"{trial.trial.id}/{pair.index}" for pair in trial.pairs)


def _logs(pair: Pair) -> Iterator[tuple[str, float]]:
    yield from pair.log_ratios.items()
    for arm, figures in (("baseline", pair.baseline), ("speculative", pair.speculative)):
        for name in OF_AN_ARM:
            value = figures.output_tok_per_s if name == "output_tok_per_s" else figures.mean(name)
            if value is not None and value > 0:
                yield f"{arm}/{name}", math.log(value)
        length = _acceptance_length(figures)
        if length is not None:
            yield f"{arm}/acceptance_length", math.log(length)


def _acceptance_length(figures: BlockFigures) -> float | None:
    return None if figures.acceptance is None else figures.acceptance.acceptance_length


def as_plain(cell: MeasuredCell) -> dict[str, Any]:
    """Plain JSON that `cell_from` reads back."""
    plain = {name: getattr(cell, name) for name in cell.__dataclass_fields__}
    plain["figures"] = {n: [e.value, e.low, e.high] for n, e in cell.figures.items()}
    plain["series"] = {name: dict(logs) for name, logs in cell.series.items()}
    return plain


def cell_from(plain: Mapping[str, Any]) -> MeasuredCell:
    """Raises: KeyError, TypeError, ValueError for anything else than `as_plain` writes."""
    return MeasuredCell(
        **{
            **plain,
            "figures": {name: Estimate(*values) for name, values in plain["figures"].items()},
        }
    )
