"""One sweep on disk."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.plan.trial import Trial, trial_from
from orchestrator.records import RunUse
from orchestrator.run.suites.job import SuiteJob, suite_job_from
from orchestrator.store.atomic import read_json, write_json
from orchestrator.store.suite_folder import SuiteFolder
from orchestrator.store.trial_folder import TrialFolder

_REPORTED = "reported.json"
_RECORDS = ("sweep.json", "trials.json", "added.json", "search.json")


@dataclass(frozen=True)
class SweepFolder:
    """Reads and writes `results/<sweep>/`."""

    path: Path

    def trial(self, trial_id: str) -> TrialFolder:
        return TrialFolder(self.path / trial_id)

    def begin(self, manifest: Mapping[str, Any]) -> None:
        write_json(self.path / "sweep.json", dict(manifest))

    def manifest(self) -> dict[str, Any]:
        """Raises: StoreError when there is no such sweep."""
        if not (self.path / "sweep.json").exists():
            raise StoreError(
                f"{self.path}: no sweep is stored here; give the folder that holds sweep.json, or "
                "run: python -m orchestrator sweep EXPERIMENT.yaml"
            )
        return dict(read_json(self.path / "sweep.json"))

    def save_trials(self, trials: Sequence[Trial]) -> None:
        """The trials that were planned, in order. One file, so that thousands are cheap."""
        _save_trials(self.path / "trials.json", trials)

    def save_run(self, run: RunUse) -> None:
        """What one run of the sweep had and did; written again as it goes on."""
        write_json(self.path / "runs" / f"{run.began_unix_s:.3f}.json", asdict(run))

    def runs(self) -> tuple[RunUse, ...]:
        """In order. Raises: StoreError when one cannot be read."""
        return tuple(RunUse(**read_json(path)) for path in sorted(self.path.glob("runs/*.json")))

    def save_added(self, trials: Sequence[Trial]) -> None:
        """The trials that results asked for: further rungs of a ladder, the confirmation."""
        _save_trials(self.path / "added.json", trials)

    def added(self) -> tuple[Trial, ...]:
        path = self.path / "added.json"
        return _read_trials(path) if path.exists() else ()

    def set_aside(self) -> Path | None:
        """Move what is recorded of trials to `earlier/<n>/`, so that they are measured anew. None:
        there was nothing. Nothing reads it there."""
        records = [self.path / name for name in _RECORDS if (self.path / name).exists()]
        records += [path.parent for path in sorted(self.path.glob("*/trial.json"))]
        if not records:
            return None
        kept = self.path / "earlier"
        aside = kept / str(len(list(kept.glob("*"))) + 1)
        aside.mkdir(parents=True)
        for path in records:
            path.replace(aside / path.name)
        return aside

    def save_search(self, record: Mapping[str, Any]) -> None:
        """How the search went: what it was given, what it spent, why it ended."""
        write_json(self.path / "search.json", dict(record))

    def search(self) -> dict[str, Any] | None:
        """None where nothing was searched."""
        path = self.path / "search.json"
        return dict(read_json(path)) if path.exists() else None

    def state(self) -> str:
        """Names what is recorded as it is now, the manifest aside: changes when a record does."""
        lists = [self.path / name for name in (*_RECORDS[1:], "suites.json")]
        found = [path.read_text(encoding="utf-8") for path in lists if path.exists()]
        for path in sorted(self.path.glob("*/outcome.json")):
            found.append(f"{path.parent.name} {TrialFolder(path.parent).state()}")
        for path in sorted(self.path.glob("suites/*/*")):
            seen = path.stat()
            found.append(f"{path.parent.name}/{path.name} {seen.st_size} {seen.st_mtime_ns}")
        return "\n".join(found)

    def save_reported(self, how: Mapping[str, Any]) -> None:
        """What the report was last made of, and where it was tracked."""
        write_json(self.path / _REPORTED, dict(how), durable=False)

    def reported(self) -> dict[str, Any] | None:
        path = self.path / _REPORTED
        return dict(read_json(path)) if path.exists() else None

    def trials(self) -> tuple[Trial, ...]:
        """Planned and added. Raises: StoreError when damaged or of another version."""
        return (*_read_trials(self.path / "trials.json"), *self.added())

    def suite(self, suite_id: str) -> SuiteFolder:
        return SuiteFolder(self.path / "suites" / suite_id)

    def save_suites(self, jobs: Sequence[SuiteJob]) -> None:
        """The suites that were asked for, in order."""
        write_json(
            self.path / "suites.json",
            [{"id": job.id, "identity": job.identity()} for job in jobs],
        )

    def suites(self) -> tuple[SuiteJob, ...]:
        """Raises: StoreError when the list is damaged or of another version."""
        path = self.path / "suites.json"
        if not path.exists():
            return ()
        try:
            return tuple(suite_job_from(entry["identity"]) for entry in read_json(path))
        except (KeyError, TypeError) as error:
            raise _of_another_version(path, error) from error

    def unfinished(
        self,
        trials: Sequence[Trial],
        *,
        retry_failed: bool = False,
        retry_stopped: bool = False,
    ) -> tuple[Trial, ...]:
        """Trials that have not ended; with `retry_failed` also those that ended in failure, with
        `retry_stopped` those that were stopped before their end."""
        asked = {"failed": retry_failed, "stopped": retry_stopped}
        again = {status for status, wanted in asked.items() if wanted}
        return tuple(trial for trial in trials if not self._ended(trial, again))

    def _ended(self, trial: Trial, again: Set[str]) -> bool:
        outcome = self.trial(trial.id).outcome()
        return outcome is not None and outcome.status not in again

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process measures into a sweep's folder at a time. Raises: StoreError."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.seek(0)
                raise StoreError(
                    f"{self.path}: another sweep (process {file.read().strip() or 'unknown'}) is "
                    "writing here; wait for it, or give this one another name"
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield


def _save_trials(path: Path, trials: Sequence[Trial]) -> None:
    write_json(path, [{"id": trial.id, "identity": trial.identity()} for trial in trials])


def _read_trials(path: Path) -> tuple[Trial, ...]:
    try:
        return tuple(trial_from(entry["identity"]) for entry in read_json(path))
    except (KeyError, TypeError) as error:
        raise _of_another_version(path, error) from error


def _of_another_version(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"{path}: was written by another version of this product ({error}); use that "
        "version, or run the sweep again under another name"
    )
