"""ports.Tracker on MLflow's client.

The fluent API is not used: it keeps the active run in a process-wide stack, and cannot set tags or
inputs of a run by id. A trial that is logged again gets a new run and the old one is deleted, so
that rebuilding from the store always ends in the same state; where only what is said of it has
changed since this process logged it, its run is amended.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse
from urllib.request import url2pathname

from orchestrator.adapters.mlflow.local_file import write_ahead
from orchestrator.adapters.mlflow.quiet import prepare_environment
from orchestrator.errors import TrackingUnavailable
from orchestrator.ports import TrackedDataset, TrackedRun, TrackedSweep
from orchestrator.store.atomic import link_or_copy

prepare_environment()

import sqlalchemy.exc  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import (  # noqa: E402
    Dataset,
    DatasetInput,
    InputTag,
    Metric,
    Param,
    RunTag,
    ViewType,
)
from mlflow.exceptions import MlflowException  # noqa: E402
from requests.exceptions import RequestException  # noqa: E402

Status = Literal["FINISHED", "FAILED", "KILLED"]

_SWEEP_TAG = "orchestrator.sweep_id"
_TRIAL_TAG = "orchestrator.trial_id"
_SYSTEM = "system"
"""MLflow shows metrics of this prefix under "System metrics"."""
_NOTE = "mlflow.note.content"
_PARAM_LIMIT = 6000
"""Characters MLflow keeps of a parameter; it cuts longer ones in silence."""


def local_tracking_uri(results: Path) -> str:
    """The default store: one sqlite file beside the results; absolute, since Tune moves about."""
    return f"sqlite:///{results.resolve() / 'mlflow.db'}"


class MlflowTracker:
    """See ports.Tracker. `uri` is sqlite:///… or the address of a tracking server."""

    def __init__(self, uri: str, *, experiment: str, results: Path) -> None:
        self._uri = uri
        self._experiment_name = experiment
        self._results = results.resolve()
        with _unavailable_if_it_fails(uri):
            if uri.startswith("sqlite:///"):
                Path(uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
            write_ahead(uri)
            self._client = MlflowClient(tracking_uri=uri)
            self._experiment_id = self._open_experiment()
        self._parent_id: str | None = None
        self._logged: dict[str, tuple[str, TrackedRun]] = {}
        """What this process logged, and as which run, by trial id."""
        self._all_known = False

    def open_sweep(self, sweep: TrackedSweep) -> None:
        with _unavailable_if_it_fails(self._uri):
            found = self._find(_SWEEP_TAG, sweep.sweep_id)
            tags = {**sweep.tags, _NOTE: sweep.description, "kind": "sweep"}
            self._all_known = found is None  # a sweep of its own: nobody else logs into it
            if found is None:
                run = self._client.create_run(
                    self._experiment_id,
                    run_name=sweep.name,
                    tags={_SWEEP_TAG: sweep.sweep_id, **tags},
                )
                found = run.info.run_id
                params = _params(sweep.params)
                self._client.log_batch(found, params=params, tags=_tags(tags), synchronous=True)
            else:
                self._client.update_run(found, status="RUNNING")
                self._client.log_batch(found, tags=_tags(tags), synchronous=True)
            self._client.set_experiment_tag(self._experiment_id, _NOTE, sweep.description)
            self._parent_id = found

    def log_run(self, run: TrackedRun) -> None:
        with _unavailable_if_it_fails(self._uri):
            before, logged = self._logged.get(run.trial_id, (None, None))
            if before is not None and logged is not None and _says_the_same_of(logged, run):
                self._amend(before, logged, run)
                return
            if before is None and not self._all_known:
                before = self._find(_TRIAL_TAG, run.trial_id)
            created = self._client.create_run(
                self._experiment_id,
                start_time=round(run.started_unix_s * 1000),
                run_name=run.name,
                tags={
                    _TRIAL_TAG: run.trial_id,
                    "mlflow.parentRunId": self._parent(),
                    _NOTE: run.note,
                    **run.tags,
                },
            )
            run_id = created.info.run_id
            ended_ms = round(run.ended_unix_s * 1000)
            steps = [
                Metric(f"{kind}/{name}", value, _time_ms(run, step), step)
                for kind, each in (("pair", run.steps), (_SYSTEM, run.system_steps))
                for step, values in enumerate(each)
                for name, value in values.items()
                if math.isfinite(value)
            ]
            summary = [
                Metric(name, value, ended_ms, len(run.steps))
                for name, value in run.metrics.items()
                if math.isfinite(value)
            ]
            # Artifacts first: for each, MLflow reads the whole run, and it is small as yet.
            beside = _local_folder(created.info.artifact_uri)
            for name, path in run.artifacts.items():
                if beside is None or not path.is_dir():
                    self._log_path(run_id, path, name)
                else:
                    shutil.copytree(path, beside / name, copy_function=link_or_copy)
            if run.dataset is not None:
                self._client.log_inputs(run_id, datasets=[_dataset(run.dataset)])
            self._client.log_batch(
                run_id, metrics=[*steps, *summary], params=_params(run.params), synchronous=True
            )
            self._client.set_terminated(run_id, status=run.status, end_time=ended_ms)
            self._logged[run.trial_id] = run_id, run
            if before is not None:
                self._client.delete_run(before)

    def _amend(self, run_id: str, logged: TrackedRun, run: TrackedRun) -> None:
        """Only what is said of a trial has changed: a verdict that a correction took back."""
        at_ms, step = round(run.ended_unix_s * 1000), len(run.steps)
        changed = {n: v for n, v in run.metrics.items() if logged.metrics.get(n) != v}
        metrics = [Metric(n, v, at_ms, step) for n, v in changed.items() if math.isfinite(v)]
        tags = _tags({"mlflow.note.content": run.note, **run.tags})
        self._client.log_batch(run_id, metrics=metrics, tags=tags, synchronous=True)
        self._logged[run.trial_id] = run_id, run

    def close_sweep(
        self,
        *,
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        artifacts: Mapping[str, Path],
        status: Status,
    ) -> None:
        with _unavailable_if_it_fails(self._uri):
            now_ms = round(time.time() * 1000)
            tags = {**tags, **self._note_with_links(tags.get(_NOTE), artifacts)}
            values = [Metric(n, v, now_ms, 0) for n, v in metrics.items() if math.isfinite(v)]
            self._client.log_batch(
                self._parent(), metrics=values, tags=_tags(tags), synchronous=True
            )
            if _NOTE in tags:
                self._client.set_experiment_tag(self._experiment_id, _NOTE, tags[_NOTE])
            for name, path in artifacts.items():
                self._log_path(self._parent(), path, name)
            self._client.set_terminated(self._parent(), status=status)

    def location(self) -> str:
        return self._uri

    def close(self) -> None:
        """Nothing is held: MLflow's client opens what it needs for every call."""

    def _open_experiment(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment_name)
        if found is not None:
            if found.lifecycle_stage == "deleted":
                self._client.restore_experiment(found.experiment_id)
            return str(found.experiment_id)
        # A server keeps artifacts where it was told to; a local file store must be told, or it
        # would put them into whatever folder the process happens to be in.
        local = self._uri.startswith("sqlite:")
        location = (self._results / "mlartifacts").as_uri() if local else None
        return str(
            self._client.create_experiment(self._experiment_name, artifact_location=location)
        )

    def _note_with_links(self, note: str | None, artifacts: Mapping[str, Path]) -> dict[str, str]:
        """The sweep's description, where a page that it names in backticks is a link to it."""
        if note is None:
            return {}
        place = f"#/experiments/{self._experiment_id}/runs/{self._parent()}/artifacts"
        for name in artifacts:
            if name.endswith(".html"):
                note = note.replace(f"`{name}`", f"[{name}]({place}/{name})", 1)
        return {_NOTE: note}

    def _find(self, tag: str, value: str) -> str | None:
        runs = self._client.search_runs(
            [self._experiment_id],
            filter_string=f"tags.`{tag}` = '{value}'",
            run_view_type=ViewType.ACTIVE_ONLY,
            max_results=1,
        )
        return str(runs[0].info.run_id) if runs else None

    def _parent(self) -> str:
        if self._parent_id is None:
            raise RuntimeError("open_sweep must be called before runs are logged")
        return self._parent_id

    def _log_path(self, run_id: str, path: Path, name: str) -> None:
        if path.is_dir():
            self._client.log_artifacts(run_id, str(path), artifact_path=name)
        else:
            folder = str(Path(name).parent)
            self._client.log_artifact(
                run_id, str(path), artifact_path=None if folder == "." else folder
            )


def _says_the_same_of(logged: TrackedRun, run: TrackedRun) -> bool:
    """Whether both tell of the same records, and nothing of the first would have to go."""
    if not (_finite(logged) <= _finite(run) and logged.tags.keys() <= run.tags.keys()):
        return False
    return replace(logged, tags=run.tags, note=run.note, metrics=run.metrics) == run


def _finite(run: TrackedRun) -> set[str]:
    return {name for name, value in run.metrics.items() if math.isfinite(value)}


def _local_folder(artifact_uri: str) -> Path | None:
    """Where the artifacts of a run lie, if this process can write there itself."""
    address = urlparse(artifact_uri)
    return Path(url2pathname(address.path)) if address.scheme == "file" else None


@contextmanager
def _unavailable_if_it_fails(uri: str) -> Iterator[None]:
    try:
        yield
    except (MlflowException, RequestException, sqlalchemy.exc.SQLAlchemyError, OSError) as error:
        raise TrackingUnavailable(
            f"MLflow at {uri} cannot be written ({_why(error)}); the records are safe, and "
            "`python -m orchestrator track SWEEP` logs them once it answers"
        ) from error


def _time_ms(run: TrackedRun, step: int) -> int:
    """Pairs spread evenly over the trial: MLflow draws system metrics over time."""
    part = (step + 1) / max(len(run.steps), 1)
    return round(1000 * (run.started_unix_s + part * (run.ended_unix_s - run.started_unix_s)))


def _why(error: BaseException) -> str:
    """The innermost cause in one line: what wraps it repeats the address and the query."""
    seen = [error]
    while (inner := seen[-1].__cause__ or seen[-1].__context__) is not None and inner not in seen:
        seen.append(inner)
    for one in reversed(seen):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def _params(params: Mapping[str, Any]) -> list[Param]:
    found = []
    for name, value in params.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > _PARAM_LIMIT:
            text = text[: _PARAM_LIMIT - 20] + " …(cut, see artifacts)"[:20]
        found.append(Param(name.replace("@", "_at_"), text))
    return found


def _tags(tags: Mapping[str, str]) -> list[RunTag]:
    return [RunTag(name, value) for name, value in tags.items()]


def _dataset(dataset: TrackedDataset) -> DatasetInput:
    return DatasetInput(
        dataset=Dataset(
            name=dataset.name,
            digest=dataset.digest,
            source_type="local",
            source=json.dumps({"uri": dataset.source}),
            profile=json.dumps(dict(dataset.profile)),
        ),
        tags=[InputTag("mlflow.data.context", "measurement")],
    )
