"""What the page carries as data: for its plots, and to be downloaded."""

from __future__ import annotations

import math
from typing import Any

from orchestrator.analyse.pairs import SPEEDUPS
from orchestrator.decide.cell_fields import cell_fields
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.measure.distribution import LEVELS
from orchestrator.records import ARMS
from orchestrator.report.page.panel import plain
from orchestrator.report.row import verdict_key

LATENCIES = ("ttft_s", "tpot_s", "e2e_s")


def trial_data(result: SweepResult) -> dict[str, Any]:
    """By trial id: distributions and pairs, for the plots of a trial's own details."""
    return {
        trial.trial.id: {
            "distribution": _quantiles(trial),
            "pairs": [
                [
                    pair.index,
                    math.exp(pair.log_ratios[metric]) if metric in pair.log_ratios else None,
                    pair.valid,
                ]
                for pair in trial.pairs
            ],
            "speedup": [decision.speedup, decision.low, decision.high],
        }
        for trial in result.every
        if trial.pairs
        for decision in [result.decision(trial)]
        for metric in [trial.trial.protocol.metric]
    }


def levels() -> list[float]:
    return list(LEVELS)


def _quantiles(trial: TrialResult) -> dict[str, Any]:
    """Milliseconds. By latency: [baseline's quantiles, speculative's]."""
    found = {}
    for name in LATENCIES:
        both = [trial.distributions.get(arm, {}).get(name) for arm in ARMS]
        if any(both):
            found[name] = [
                None if one is None else [float(f"{q * 1e3:.4g}") for q in one.quantiles]
                for one in both
            ]
    return found


def cell_table(result: SweepResult) -> dict[str, Any]:
    """One line a trial, under METRICS' names; what is undefined is null."""
    names: dict[str, None] = {}
    lines = []
    for trial in result.every:
        line = _cell(trial, result)
        names.update(dict.fromkeys(line))
        lines.append(line)
    return {
        "columns": list(names),
        "rows": [[plain(line.get(name)) for name in names] for line in lines],
    }


def _cell(trial: TrialResult, result: SweepResult) -> dict[str, Any]:
    cell, decision = trial.trial.cell, result.decision(trial)
    line: dict[str, Any] = {
        **cell_fields(trial.trial),
        "concurrency": cell.load.concurrency,
        "rate_rps": cell.load.rate_rps,
        "simulated": trial.simulated,
        "verdict": verdict_key(trial, decision).removeprefix("verdict.").replace("_", " "),
        "pairs": len(trial.pairs),
        "valid_pairs": len(trial.valid_pairs),
        "acceptance_rate": trial.acceptance_rate,
        "acceptance_length": trial.acceptance_length,
    }
    for name in SPEEDUPS:
        of = decision if name == decision.metric else trial.decisions[name]
        line |= {name: of.speedup, f"{name}_low": of.low, f"{name}_high": of.high}
    for arm in ARMS:
        for name, value in trial.figures[arm].items():
            line[f"{arm}/{name}"] = value
    return line


def pair_table(result: SweepResult) -> dict[str, Any]:
    """One line a pair."""
    columns = ["trial_id", "pair", "valid", "baseline_first", *SPEEDUPS]
    columns += [f"{arm}_output_tok_per_s" for arm in ARMS] + ["acceptance_length", "why_invalid"]
    rows = []
    for trial in result.every:
        for pair in trial.pairs:
            acceptance = pair.speculative.acceptance
            rows.append(
                [
                    trial.trial.id,
                    pair.index,
                    pair.valid,
                    pair.baseline_first,
                    *(
                        math.exp(pair.log_ratios[name]) if name in pair.log_ratios else None
                        for name in SPEEDUPS
                    ),
                    pair.baseline.output_tok_per_s,
                    pair.speculative.output_tok_per_s,
                    None if acceptance is None else acceptance.acceptance_length,
                    "; ".join(pair.why_invalid()),
                ]
            )
    return {"columns": columns, "rows": [plain(row) for row in rows]}
