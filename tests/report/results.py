"""Sweep results to report on: from a simulated story, and many cells made of few."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.decide.multiplicity import corrected
from orchestrator.decide.sweep_result import SweepResult, read_sweep
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Language, Words
from orchestrator.report.written import write_report
from orchestrator.store import SweepFolder
from tests.sweep.world import run_story, write_experiment

HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>{{7*7}}'


def simulated_story(folder: Path) -> SweepFolder:
    """A whole simulated sweep on disk, with its report in English."""
    run_story(write_experiment(folder), folder / "r")
    return SweepFolder(folder / "r" / "story")


def in_language(folder: SweepFolder, language: Language) -> Path:
    """The page of a stored sweep."""
    return write_report(read_sweep(folder), folder.path, Words(language)).page


def many_cells(few: SweepResult, count: int) -> SweepResult:
    """`count` comparisons: those of `few` again and again, at other lengths and loads."""
    trials = tuple(_moved(few.trials[i % len(few.trials)], i) for i in range(count))
    decisions = {trial.trial.id: trial.headline for trial in trials}
    return replace(few, trials=trials, decisions=corrected(decisions, confidence=0.95))


def _moved(result: TrialResult, index: int) -> TrialResult:
    cell = result.trial.cell
    concurrency = 2 ** (index // 10 % 5)
    load = replace(cell.load, concurrency=concurrency)
    moved = replace(
        cell,
        method=("ngram", "eagle")[index // 5 % 2],
        speculation_length=1 + index % 5,
        batch_size=concurrency,
        load=load,
        sampling=replace(cell.sampling, temperature=0.4 * (index // 50)),
    )
    return replace(
        result,
        trial=replace(result.trial, cell=moved, seed=index),
        rung=replace(result.rung, load=load),
    )


def hostile(result: SweepResult) -> SweepResult:
    """The same, with text from outside in every place where such text can stand."""
    manifest = {
        **result.manifest,
        "name": HOSTILE,
        "text": HOSTILE,
        "notices": [HOSTILE],
        "skipped": [{"cell": HOSTILE, "rule": "x", "reason": HOSTILE}],
        "experiment": {**result.manifest["experiment"], "description": HOSTILE},
        "prompts": {HOSTILE: {"source": HOSTILE, "categories": {HOSTILE: 1}, "hash": HOSTILE}},
    }
    return replace(result, manifest=manifest, trials=tuple(_hostile(t) for t in result.trials))


def _hostile(result: TrialResult) -> TrialResult:
    cell = result.trial.cell
    workload = replace(cell.workload, name=HOSTILE)
    trial = replace(result.trial, cell=replace(cell, draft=HOSTILE, workload=workload))
    assert result.outcome is not None
    return replace(
        result,
        trial=trial,
        outcome=replace(result.outcome, status="failed", cause=HOSTILE, log_tail=HOSTILE),
        categories={arm: dict.fromkeys([HOSTILE], next(iter(found.values())))
                    for arm, found in result.categories.items()},
    )  # fmt: skip
