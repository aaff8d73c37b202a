"""AL*, tokens per step and the margin between them, over speculation length and batch size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.analyse.left_out import GridCell, Prediction, left_out, predictions
from orchestrator.decide.trial_result import TrialResult


@dataclass(frozen=True)
class StepMap:
    """One way to speculate on one workload at one temperature."""

    method: str
    draft: str | None
    workload: str
    temperature: float
    trials: tuple[TrialResult, ...]
    cells: tuple[GridCell, ...]
    """In the order of `trials`."""
    confidence: float

    def predictions(self) -> list[Prediction]:
        """Of lengths and batch sizes in between that were not measured."""
        return predictions(self.cells, confidence=self.confidence)

    def left_out(self) -> list[Prediction]:
        """Of measured cells, from the others: what the predictions are worth."""
        return left_out(self.cells, confidence=self.confidence)


def step_maps(trials: Iterable[TrialResult]) -> Iterator[StepMap]:
    """Maps with two cells or more whose steps were timed in both arms; closed loads only, as an
    open load has no batch size of its own.

    Trials that differ in further options (an n-gram window, a supposed cost) are on maps of their
    own.
    """
    groups: dict[tuple[object, ...], list[tuple[TrialResult, GridCell]]] = {}
    for trial in trials:
        found = _cell(trial)
        if found is None:
            continue
        cell, speculation = trial.trial.cell, trial.trial.pair.speculative.speculation
        given = {} if speculation is None else speculation.options
        options = tuple(sorted(map(str, given.items())))
        key = (cell.method, cell.draft, options, cell.workload, cell.sampling.temperature)
        groups.setdefault(key, []).append((trial, found))
    for members in groups.values():
        if len(members) < 2:
            continue
        first = members[0][0].trial
        yield StepMap(
            method=first.cell.method,
            draft=first.cell.draft,
            workload=first.cell.workload.name,
            temperature=first.cell.sampling.temperature,
            trials=tuple(trial for trial, _ in members),
            cells=tuple(cell for _, cell in members),
            confidence=first.protocol.confidence,
        )


def _cell(trial: TrialResult) -> GridCell | None:
    cell, step = trial.trial.cell, trial.step
    needed, tokens = step.break_even_acceptance_length, step.tokens_per_step
    if cell.load.mode != "closed" or not trial.valid_pairs or needed is None or tokens is None:
        return None
    return GridCell(
        speculation_length=cell.speculation_length,
        batch=cell.load.concurrency or cell.batch_size,
        tokens_per_step=tokens,
        break_even_acceptance_length=needed,
        speedup=trial.decisions["speedup_tpot"].speedup,
    )
