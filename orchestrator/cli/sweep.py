"""`sweep`: the main job. Builds the adapters, runs the story, shows what a person sees."""

from __future__ import annotations

import argparse
import contextlib
import functools
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from orchestrator.adapters.local.environment import environment_snapshot
from orchestrator.cli.attaching import AttachedEngines, attached_manifest
from orchestrator.cli.options import add_suites, add_tracking, suites_asked, tracking_uri
from orchestrator.cli.preparation import Prepared, prepare
from orchestrator.cli.progress import SweepProgress
from orchestrator.cli.running import ClusterEngines, Engines, real_engines, simulated_engines
from orchestrator.cli.searching import steer
from orchestrator.errors import (
    DeploymentError,
    Fault,
    MeasurementInvalid,
    ModelUnavailable,
    SpecError,
    TrialsFailed,
)
from orchestrator.ports import OnProgress, Tracker
from orchestrator.report.plots import write_plots
from orchestrator.report.terminal import result_table
from orchestrator.spec.read import read_experiment
from orchestrator.spec.scenario import read_profile
from orchestrator.store import SweepFolder
from orchestrator.store.comparable import fingerprint
from orchestrator.store.reuse import reuse
from orchestrator.sweep import Finished, Sweep, run_sweep
from orchestrator.sweep_suites import unfinished_suites

if TYPE_CHECKING:
    from orchestrator.cli.machine_room import Joined


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT.yaml")
    add_tracking(parser)
    add_suites(parser)
    parser.add_argument("--address", help="join this Ray cluster (default: one on this machine)")
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="show the sweep to Prometheus at 127.0.0.1:PORT/metrics as it runs (0: a free port)",
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="run trials again that ended in failure"
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="measure everything anew: nothing is taken over from other sweeps, and what this one "
        "holds is set aside",
    )
    parser.add_argument(
        "--retry-stopped",
        action="store_true",
        help="go on with trials that a search stopped before their end",
    )
    parser.add_argument(
        "--offline", action="store_true", help="never download: every model must be here already"
    )


def run(args: argparse.Namespace) -> int:
    joined = _joined(args)
    try:
        return _run(args, joined)
    finally:
        if joined is not None:
            joined.close()


def _joined(args: argparse.Namespace) -> Joined | None:
    """The cluster that is asked for: what it has decides what is planned."""
    if args.address is None:
        return None
    experiment = read_experiment(args.experiment)
    if experiment.simulated or experiment.attach is not None:
        return None
    from orchestrator.cli.machine_room import join

    return join(args.address)


def _run(args: argparse.Namespace, joined: Joined | None) -> int:
    cluster = joined.facts if joined else None
    prepared = prepare(
        args.experiment, offline=args.offline, cluster=cluster, suites=suites_asked(args)
    )
    _refuse_what_cannot_run(prepared)
    folder = SweepFolder((args.results / prepared.experiment.name).resolve())
    if args.fresh:
        with folder.locked():
            folder.set_aside()
    there = joined.environment(prepared.experiment, folder.path) if joined else None
    manifest = manifest_of(prepared, folder, environment=there)
    jobs = prepared.jobs()
    suites = prepared.suite_jobs()
    todo = folder.unfinished(
        [job.trial for job in jobs],
        retry_failed=args.retry_failed,
        retry_stopped=args.retry_stopped,
    )
    suites_todo = unfinished_suites(folder, suites, retry_failed=args.retry_failed)
    progress = SweepProgress(
        total=len(jobs),
        done=len(jobs) - len(todo),
        suites=len(suites_todo),
        engine_starts=prepared.plan.engine_starts,
    )
    progress.opening(prepared.plan, folder.path)
    watched = contextlib.ExitStack()
    on_progress = _watched(args, prepared, len(jobs), len(jobs) - len(todo), progress, watched)
    engines = _engines(prepared, folder, joined)
    try:
        if isinstance(engines, AttachedEngines):
            # Before anything is written: servers that cannot be measured leave no trace.
            earlier = None if todo or suites_todo else folder.manifest()
            manifest = attached_manifest(manifest, engines, earlier=earlier)
        finished = run_sweep(
            Sweep(
                jobs=jobs,
                further=prepared.further,
                further_rungs=prepared.experiment.load.refine,
                folder=folder,
                manifest=manifest,
                executor=engines,
                suites=suites,
                suite_executor=engines,
                open_tracker=lambda: _tracker(prepared, args),
                on_progress=on_progress,
                retry_failed=args.retry_failed,
                retry_stopped=args.retry_stopped,
                reuse=None if args.fresh else functools.partial(reuse, folder, manifest),
                steer=steer(prepared, folder),
                draw=write_plots,
                device_use=engines.use if isinstance(engines, ClusterEngines) else None,
            )
        )
    except KeyboardInterrupt:
        progress.interrupted(args.experiment)
        engines.close()
        return 130
    finally:
        watched.close()
        engines.close()
    _show(finished, args)
    return _status(finished)


def _watched(
    args: argparse.Namespace,
    prepared: Prepared,
    planned: int,
    done: int,
    progress: OnProgress,
    until: contextlib.ExitStack,
) -> OnProgress:
    """Progress, shown to Prometheus as well where that is asked for."""
    if args.metrics_port is None:
        return progress
    from orchestrator.adapters.sweep_metrics import SweepMetrics

    experiment = prepared.experiment
    metrics = SweepMetrics(
        experiment.name,
        planned=planned,
        done=done,
        simulated=experiment.simulated,
        on_progress=progress,
    )
    try:
        port = metrics.serve(args.metrics_port)
    except (OSError, OverflowError) as error:
        raise SpecError(
            [Fault("--metrics-port", None, "", "must be a free port", str(args.metrics_port),
                   str(error))]
        ) from error  # fmt: skip
    until.callback(metrics.close)
    print(f"metrics: http://127.0.0.1:{port}/metrics", flush=True)
    return metrics


def _refuse_what_cannot_run(prepared: Prepared) -> None:
    if prepared.missing_models:
        raise ModelUnavailable("\n".join(prepared.missing_models))
    errors = prepared.plan.errors
    if errors:
        raise SpecError(
            [Fault(str(prepared.file), None, n.rule, n.text, hint=n.hint) for n in errors]
        )


def _engines(prepared: Prepared, folder: SweepFolder, joined: Joined | None) -> Engines:
    if prepared.experiment.simulated:
        return simulated_engines(prepared, folder)
    if prepared.experiment.attach is not None:
        return AttachedEngines(prepared, folder)
    return real_engines(prepared, folder, joined)


def _tracker(prepared: Prepared, args: argparse.Namespace) -> Tracker:
    from orchestrator.adapters.mlflow import MlflowProcess

    tracking = prepared.experiment.tracking
    return MlflowProcess(
        tracking_uri(args, tracking.uri),
        experiment=tracking.experiment or prepared.experiment.name,
        results=args.results,
    )


def manifest_of(
    prepared: Prepared, folder: SweepFolder, *, environment: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """What is recorded of a sweep as a whole: the question, the preconditions, the prompts.

    `environment` is that of the nodes where engines run, if they are not this one.
    """
    environment = environment or environment_snapshot(folder.path)
    plan = prepared.plan
    return {
        "name": prepared.experiment.name,
        "sweep_id": uuid.uuid4().hex,
        "created_unix_s": time.time(),
        "file": str(prepared.file),
        "text": prepared.file.read_text(encoding="utf-8-sig"),
        "folder": folder.path.name,
        "simulated": prepared.experiment.simulated,
        "experiment": prepared.experiment.as_plain(),
        "environment": environment,
        "fingerprint": fingerprint(environment),
        "models": {
            name: {"source": model.source, "revision": model.revision}
            for name, model in prepared.models.items()
        },
        "prompts": {name: prompts.describe() for name, prompts in prepared.prompts.items()},
        "scenarios": [
            read_profile(name).model_dump(mode="json") for name in prepared.experiment.scenarios
        ],
        "control": plan.control,
        "notices": [f"{notice.rule}: {notice}" for notice in plan.notices],
        "skipped": [
            {"cell": item.cell.label(), "rule": item.rule, "reason": item.reason}
            for item in plan.skipped
        ],
    }


def _show(finished: Finished, args: argparse.Namespace) -> None:
    console = Console()
    console.print()
    console.print(result_table(finished.result))
    console.print()
    for note in finished.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    report = _short(finished.report.page)
    console.print(f"Report:  {report}", markup=False, highlight=False)
    if finished.tracking is not None:
        ui = "python -m orchestrator ui"
        if args.results != Path("results"):
            ui += f" --results {args.results}"
        console.print(f"MLflow:  {ui}   ({finished.tracking})", markup=False, highlight=False)
    console.print(f"Records: {report.parent}", markup=False, highlight=False)


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _status(finished: Finished) -> int:
    """0; 3 no engine ran at all; 4 some trials or suites failed; 5 nothing valid was measured.

    What a suite found is no failure of the sweep.
    """
    every = finished.result.every
    failed = [trial for trial in every if trial.failed]
    if not failed:
        runs = finished.result.suite_runs
        broken = [run for run in runs if run.failed]
        if broken and len(broken) == len(runs) and not every:
            return DeploymentError.exit_status
        return TrialsFailed.exit_status if broken else 0
    measured = [trial for trial in every if trial.valid_pairs]
    if measured:
        return TrialsFailed.exit_status
    never_ran = all(not trial.pairs for trial in failed)
    return DeploymentError.exit_status if never_ran else MeasurementInvalid.exit_status
