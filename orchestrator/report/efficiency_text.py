"""The efficiency of a sweep, in a sentence and as metrics."""

from __future__ import annotations

from orchestrator.decide.efficiency import Efficiency
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH


def efficiency_sentence(found: Efficiency | None, words: Words = ENGLISH) -> str:
    """Empty where there is nothing to say."""
    if found is None or found.fraction is None:
        return ""
    return words(
        "efficiency.sentence",
        fraction=f"{found.fraction:.0%}",
        pairs=found.device_pairs,
        runs=found.runs,
        measured=found.measured_s,
        all=found.pair_seconds,
        starting=found.starting_s,
        starts=found.engine_starts,
        failed=found.failed_starts,
        waiting=found.waiting_s,
        warmup=found.warmup_s,
        other=found.other_s,
    )


def efficiency_metrics(found: Efficiency | None) -> dict[str, float]:
    """Of the parent run."""
    if found is None or found.fraction is None:
        return {}
    return {
        "efficiency": found.fraction,
        "efficiency/pair_seconds_s": found.pair_seconds,
        "efficiency/measured_s": found.measured_s,
        "efficiency/starting_s": found.starting_s,
        "efficiency/waiting_s": found.waiting_s,
        "efficiency/warmup_s": found.warmup_s,
        "efficiency/other_s": found.other_s,
        "efficiency/engine_starts": float(found.engine_starts),
        "efficiency/device_pairs": float(found.device_pairs),
    }
