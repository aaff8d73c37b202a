"""A sweep as tidy pandas frames: one row a cell, a pair, a request. docs/results-api.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from orchestrator.analyse.pairs import SPEEDUPS, Pair
from orchestrator.decide.cell_fields import cell_fields
from orchestrator.decide.conditions import input_length, level_of
from orchestrator.decide.standing import cell_at
from orchestrator.decide.sweep_result import SweepResult, whole_sweep
from orchestrator.decide.trial_result import TrialResult
from orchestrator.measure.latency import latency_of
from orchestrator.records import ARMS, Arm, BlockRecord
from orchestrator.store import SweepFolder

ARM_FIGURES = (
    "output_tok_per_s",
    "goodput_tok_per_s",
    "slo_attainment",
    "ttft_mean_s",
    "ttft_p95_s",
    "tpot_mean_s",
    "tpot_p95_s",
    "e2e_mean_s",
    "e2e_p95_s",
)
CELL_COLUMNS = (
    "trial_id", "kind", "method", "draft", "speculation_length", "batch_size", "temperature",
    "workload", "load_mode", "load", "input_tokens_median", "output_tokens", "status", "failure",
    "standing", "verdict", "metric", "pairs", "valid_pairs",
    *(f"{name}{end}" for name in SPEEDUPS for end in ("", "_low", "_high")),
    "acceptance_length", "acceptance_rate",
    *(f"{arm}_{name}" for arm in ARMS for name in ARM_FIGURES),
    "simulated",
)  # fmt: skip
PAIR_COLUMNS = (
    "trial_id", "pair", "baseline_first", "valid", "why_invalid", "asked", *SPEEDUPS,
    "acceptance_length", *(f"{arm}_{name}" for arm in ARMS for name in ARM_FIGURES),
)  # fmt: skip
REQUEST_COLUMNS = (
    "trial_id", "pair", "arm", "request_id", "prompt_id", "category", "turn", "offset_s", "sent_s",
    "ttft_s", "tpot_s", "e2e_s", "input_tokens", "output_tokens", "finish_reason", "completed",
    "error", "pair_valid",
)  # fmt: skip


@dataclass(frozen=True)
class SweepFrames:
    """Everything of one sweep; what is undefined is NaN or None, never 0."""

    result: SweepResult
    folder: SweepFolder

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row a trial: controls, comparisons in the plan's order, confirmations."""
        rows = [_cell(self.result, trial) for trial in self.result.every]
        return pd.DataFrame(rows, columns=list(CELL_COLUMNS))

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row a pair, invalid ones too."""
        rows = [row for trial in self.result.every for row in _pairs(trial)]
        return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a measured request; read from the records when it is first asked for."""
        rows = [row for trial in self.result.every for row in self._requests(trial)]
        return pd.DataFrame(rows, columns=list(REQUEST_COLUMNS))

    def _requests(self, trial: TrialResult) -> Iterator[dict[str, Any]]:
        for pair, blocks in zip(
            trial.pairs, self.folder.trial(trial.trial.id).pairs(), strict=True
        ):
            for block in blocks:
                yield from _of_block(trial.trial.id, pair, block)


def read_frames(folder: SweepFolder) -> SweepFrames:
    """Raises: StoreError when there is no such sweep, or its records are damaged."""
    return SweepFrames(whole_sweep(folder), folder)


def _cell(result: SweepResult, trial: TrialResult) -> dict[str, Any]:
    cell, decision, outcome = trial.trial.cell, result.decision(trial), trial.outcome
    row: dict[str, Any] = {
        **cell_fields(trial.trial),
        "load": level_of(cell.load),
        "input_tokens_median": input_length(result.manifest, cell.workload.name),
        "output_tokens": cell.workload.output_tokens,
        "status": None if outcome is None else outcome.status,
        "failure": None if outcome is None or outcome.failure is None else str(outcome.failure),
        "standing": str(cell_at(result, trial).standing),
        "verdict": str(decision.verdict) if trial.valid_pairs else None,
        "metric": decision.metric,
        "pairs": len(trial.pairs),
        "valid_pairs": len(trial.valid_pairs),
        "acceptance_length": trial.acceptance_length,
        "acceptance_rate": trial.acceptance_rate,
        "simulated": trial.simulated or result.simulated,
    }
    for name in SPEEDUPS:
        of = trial.decisions[name]
        row |= {name: of.speedup, f"{name}_low": of.low, f"{name}_high": of.high}
    for arm in ARMS:
        row |= _arm(arm, trial.figures[arm])
    return row


def _arm(arm: Arm, figures: Mapping[str, float]) -> dict[str, float | None]:
    return {f"{arm}_{name}": figures.get(name) for name in ARM_FIGURES}


def _pairs(trial: TrialResult) -> Iterator[dict[str, Any]]:
    for index, pair in enumerate(trial.pairs):
        acceptance = pair.speculative.acceptance
        yield {
            "trial_id": trial.trial.id,
            "pair": pair.index,
            "baseline_first": pair.baseline_first,
            "valid": pair.valid,
            "why_invalid": "; ".join(pair.why_invalid()) or None,
            "asked": trial.pair_prompts[index] if index < len(trial.pair_prompts) else None,
            "acceptance_length": None if acceptance is None else acceptance.acceptance_length,
            **{name: math.exp(log) for name, log in pair.log_ratios.items()},
            **_arm("baseline", pair.baseline.as_metrics()),
            **_arm("speculative", pair.speculative.as_metrics()),
        }


def _of_block(trial_id: str, pair: Pair, block: BlockRecord) -> Iterator[dict[str, Any]]:
    for request in block.requests:
        latency = latency_of(request)
        yield {
            "trial_id": trial_id,
            "pair": pair.index,
            "arm": block.arm,
            "request_id": request.request_id,
            "prompt_id": request.prompt_id,
            "category": request.category,
            "turn": request.turn,
            "offset_s": request.offset_s,
            "sent_s": request.sent_s,
            "ttft_s": latency.ttft_s,
            "tpot_s": latency.tpot_s,
            "e2e_s": latency.e2e_s,
            "input_tokens": request.input_tokens,
            "output_tokens": request.output_tokens,
            "finish_reason": request.finish_reason,
            "completed": request.completed,
            "error": None if request.error is None else str(request.error),
            "pair_valid": pair.valid,
        }
