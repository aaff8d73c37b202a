"""What MLflow holds of a trial and of a sweep, derived from the records alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.analyse.pairs import SPEEDUPS, Pair
from orchestrator.decide.recommendation import recommend
from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision
from orchestrator.ports import TrackedDataset, TrackedRun, TrackedSweep
from orchestrator.report.efficiency_text import efficiency_metrics
from orchestrator.report.row import verdict_text
from orchestrator.report.tracked_note import closing_note, trial_note
from orchestrator.report.words import device_text
from orchestrator.store import SuiteFolder, TrialFolder

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Totals:
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


def tracked_sweep(manifest: Manifest) -> TrackedSweep:
    """The parent run: what all trials share."""
    experiment = manifest["experiment"]
    lines = [
        f"# {manifest['name']}",
        str(experiment.get("description") or ""),
        f"Target: `{experiment.get('target')}` · {device_text(manifest.get('environment') or {})}",
        "Each child run is one cell: filter by `tags.verdict`, sort by `speedup_throughput_low`, "
        "or select the children and *Compare* them: parallel coordinates over `method`, "
        "`speculation_length`, `batch_size` and `temperature` against the speedup. "
        "`pair/…` metrics have one step per pair.",
        f"Records: `{manifest.get('folder')}` · `python -m orchestrator report {manifest['name']}`",
    ]
    return TrackedSweep(
        name=str(manifest["name"]),
        sweep_id=str(manifest["sweep_id"]),
        description="\n\n".join(line for line in lines if line),
        params={
            "target": experiment.get("target"),
            "engine": experiment.get("engine") or {},
            "seed": experiment.get("seed"),
            "pairs_max": experiment["measure"]["pairs"]["max"],
            "confidence": experiment["measure"]["confidence"],
            "margin": experiment["measure"]["margin"],
        },
        tags={"simulated": str(bool(manifest.get("simulated"))).lower()},
    )


def tracked_run(
    result: TrialResult, decision: Decision, folder: TrialFolder, manifest: Manifest
) -> TrackedRun:
    """One child run. `decision` is the headline, corrected where the sweep has ended."""
    began = result.started_unix_s or float(manifest.get("created_unix_s") or 0.0)
    return TrackedRun(
        trial_id=result.trial.id,
        name=result.trial.label(),
        params=_params(result),
        metrics=_summary(result, decision),
        steps=tuple(_step(result, index) for index in range(len(result.pairs))),
        system_steps=tuple(_system(pair) for pair in result.pairs),
        tags={**_tags(result, decision, manifest), **_reused(folder)},
        note=trial_note(result, decision, manifest),
        artifacts={"trial": folder.path},
        dataset=_dataset(result, manifest),
        started_unix_s=began,
        ended_unix_s=result.ended_unix_s or began,
        status="FAILED" if result.failed else "FINISHED",
    )


def tracked_suite(suite: JudgedSuite, folder: SuiteFolder, manifest: Manifest) -> TrackedRun:
    """One child run per suite and pair: its verdict, its cases, its record."""
    job, result = suite.job, suite.result
    speculation = job.pair.speculative.speculation
    assert suite.outcome is not None
    began = suite.started_unix_s or float(manifest.get("created_unix_s") or 0.0)
    tags = {
        "kind": "suite",
        "suite": job.suite,
        "sweep": str(manifest["name"]),
        "verdict": suite.verdict,
        "simulated": str(bool(manifest.get("simulated"))).lower(),
    }
    metrics: dict[str, float] = {}
    lines = [f"**{job.suite}: {suite.verdict}**"]
    if result is not None:
        counts = Counter(str(case.status) for case in result.cases)
        metrics = {f"cases/{name.replace(' ', '_')}": float(n) for name, n in counts.items()}
        metrics |= {"findings": float(len(result.findings)), **result.metrics}
        tags["complete"] = str(result.complete).lower()
        tags["ok"] = "unknown" if result.ok is None else str(result.ok).lower()
        lines += [f"- {case.case}: {case.status}: {case.seen}" for case in result.findings]
        lines += [f"- {note}" for note in result.notes]
    if suite.outcome.failure is not None:
        tags |= {
            "failure": str(suite.outcome.failure),
            "failure_cause": str(suite.outcome.cause)[:500],
        }
        lines.append(f"Failure: {suite.outcome.cause}")
    return TrackedRun(
        trial_id=job.id,
        name=job.label(),
        params={
            "kind": "suite",
            "suite": job.suite,
            "method": "none" if speculation is None else speculation.method,
            "draft": (speculation.draft if speculation else None) or "none",
            "speculation_length": 0 if speculation is None else speculation.speculation_length,
            "target": job.pair.baseline.target,
            "engine": dict(job.pair.baseline.engine),
        },
        metrics=metrics,
        steps=(),
        tags=tags,
        note="\n\n".join(lines),
        artifacts={"suite": folder.path},
        dataset=None,
        started_unix_s=began,
        ended_unix_s=began + (suite.seconds or 0.0),
        status="FAILED" if suite.failed else "FINISHED",
    )


def tracked_totals(result: SweepResult, artifacts: Mapping[str, Path]) -> Totals:
    """Counts of verdicts, the control, the advice and the conclusions, on the parent run."""
    counts = Counter(
        "failed" if trial.failed else str(result.decision(trial).verdict) for trial in result.trials
    )
    metrics = {f"cells/{name.replace(' ', '_')}": float(count) for name, count in counts.items()}
    metrics["cells"] = float(len(result.trials))
    control = result.control()
    if control is not None and control.interval is not None:
        metrics["aa_speedup"] = control.interval.speedup
        metrics["aa_speedup_low"] = control.interval.low
        metrics["aa_speedup_high"] = control.interval.high
    best = result.best
    tags = {} if best is None else {"best_cell": best.trial.cell.label()}
    tags["advice"] = str(recommend(result).advice)
    # MLflow shows this tag as the run's description.
    tags["mlflow.note.content"] = closing_note(result, artifacts)
    for name, suites in result.suites_named().items():
        found = [len(suite.result.findings) for suite in suites if suite.result is not None]
        if found:
            metrics[f"suites/{name}_findings"] = float(sum(found))
    return Totals({**metrics, **efficiency_metrics(result.efficiency)}, tags)


def _params(result: TrialResult) -> dict[str, Any]:
    """Flat, the same names on every run, bare numbers: so that the compare view lines them up.

    MLflow's plot begins with the first three numbers that differ: batch_size, speculation_length,
    temperature. What merely follows from them (concurrency, seed, lengths) is a tag.
    """
    trial, cell = result.trial, result.trial.cell
    return {
        "kind": trial.kind,
        "method": cell.method,
        "draft": cell.draft or "none",
        "speculation_length": cell.speculation_length,
        "batch_size": cell.batch_size,
        "temperature": cell.sampling.temperature,
        "workload": cell.workload.name,
        "load_mode": cell.load.mode,
        "rate_rps": cell.load.rate_rps if cell.load.rate_rps is not None else 0,
        "target": trial.pair.baseline.target,
        "engine": dict(trial.pair.baseline.engine),
        "speculation_options": (
            {}
            if trial.pair.speculative.speculation is None
            else dict(trial.pair.speculative.speculation.options)
        ),
    }


def _summary(result: TrialResult, decision: Decision) -> dict[str, float]:
    values: dict[str, float | None] = {}
    for name in SPEEDUPS:
        of = result.decisions[name]
        values |= {name: of.speedup, f"{name}_low": of.low, f"{name}_high": of.high}
    values["acceptance_length"] = result.acceptance_length
    values["acceptance_rate"] = result.acceptance_rate
    values["pairs"] = float(len(result.pairs))
    values["valid_pairs"] = float(decision.pairs)
    for arm, figures in result.figures.items():
        values |= {f"{arm}/{name}": value for name, value in figures.items()}
    values |= step_metrics(result)
    if result.outcome is not None:
        values["trial_wall_s"] = result.outcome.wall_s
        values["trial_measured_s"] = result.outcome.measured_s
    for name, facts in result.engines.items():
        values[f"{name}/start_s"] = facts.start_s
        values[f"{name}/kv_capacity_tokens"] = facts.kv_capacity_tokens
    return {name: float(value) for name, value in values.items() if value is not None}


def step_metrics(result: TrialResult) -> dict[str, float | None]:
    """Stage times of decode steps under METRICS' names, per arm, and what follows from them."""
    step = result.step
    values: dict[str, float | None] = {
        "break_even_acceptance_length": step.break_even_acceptance_length,
        "tokens_per_step": step.tokens_per_step,
        "predicted_speedup_tpot": step.predicted_speedup,
    }
    for arm, times in (("baseline", step.baseline), ("speculative", step.speculative)):
        if times is not None:
            for name in ("draft_s", "verify_s", "sample_s", "overhead_s", "step_s"):
                values[f"{arm}/{name}"] = getattr(times, name)
    return values


def _step(result: TrialResult, index: int) -> dict[str, float]:
    pair = result.pairs[index]
    step = {name: math.exp(value) for name, value in pair.log_ratios.items()}
    step["valid"] = float(pair.valid)
    acceptance = pair.speculative.acceptance
    if acceptance is not None and acceptance.acceptance_length is not None:
        step["acceptance_length"] = acceptance.acceptance_length
    for arm, figures in (("baseline", pair.baseline), ("speculative", pair.speculative)):
        if figures.output_tok_per_s is not None:
            step[f"{arm}_output_tok_per_s"] = figures.output_tok_per_s
    return step


_SYSTEM = ("gpu_", "host_", "process_")


def _system(pair: Pair) -> dict[str, float]:
    """What a pair's blocks took of the machine, under METRICS' names; MLflow shows it apart."""
    return {
        f"{arm}/{name}": value
        for arm, figures in (("baseline", pair.baseline), ("speculative", pair.speculative))
        for name, value in figures.as_metrics().items()
        if name.startswith(_SYSTEM)
    }


def _reused(folder: TrialFolder) -> dict[str, str]:
    """Which sweep measured the trial, where it was not this one."""
    origin = folder.reused()
    return {} if origin is None else {"reused_from": str(origin["sweep"])}


def _tags(result: TrialResult, decision: Decision, manifest: Manifest) -> dict[str, str]:
    tags = {
        "kind": result.trial.kind,
        "sweep": str(manifest["name"]),
        "verdict": verdict_text(result, decision).partition(" (")[0],
        "simulated": str(result.simulated).lower(),
        "cell": result.trial.cell.label(),
        "load": result.trial.cell.load.label(),
        "output_tokens": str(result.trial.cell.workload.output_tokens),
        "seed": str(result.trial.seed),
    }
    if result.outcome is not None and result.outcome.failure is not None:
        tags["verdict"] = "failed"
        tags["failure"] = str(result.outcome.failure)
        tags["failure_cause"] = str(result.outcome.cause)[:500]
    for arm, facts in result.engines.items():
        tags[f"{arm}.engine"] = f"{facts.engine} {facts.engine_version}"
    return tags


def _dataset(result: TrialResult, manifest: Manifest) -> TrackedDataset | None:
    name = result.trial.cell.workload.name
    profile = (manifest.get("prompts") or {}).get(name)
    if profile is None:
        return None
    return TrackedDataset(
        name=name,
        source=str(profile["source"]),
        digest=result.trial.cell.workload.prompts_hash[:36],
        profile=profile,
    )
