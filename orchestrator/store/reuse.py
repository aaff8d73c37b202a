"""The same trial in the same environment is not measured twice, whichever sweep measured it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.plan.trial import Trial
from orchestrator.store.atomic import link_or_copy, write_json
from orchestrator.store.sweep_folder import SweepFolder
from orchestrator.store.trial_folder import REUSED


def reuse(
    folder: SweepFolder, manifest: Mapping[str, Any], trials: Sequence[Trial]
) -> dict[str, str]:
    """Take over what other sweeps beside `folder` have measured of `trials`.

    Returns the name of the sweep by trial id. Taken is a trial with the same id that finished
    in a sweep whose environment has the same fingerprint and whose models are the same revisions;
    its records are linked (or copied) whole, with where they are from. What this sweep has records
    of already stays. Attached servers say too little of themselves: nothing is taken from or for
    them.
    Raises: StoreError when records cannot be written.
    """
    wanted = {trial.id: trial for trial in trials if not folder.trial(trial.id).path.exists()}
    taken: dict[str, str] = {}
    if not wanted or _attached(manifest):
        return taken
    for other, theirs in _comparable_sweeps(folder, manifest):
        for trial_id in sorted(wanted.keys() & _names(other.path)):
            trial = wanted[trial_id]
            outcome = other.trial(trial_id).outcome()
            if outcome is None or outcome.status != "finished":
                continue
            if _models(manifest, trial) != _models(theirs, trial):
                continue
            origin = other.trial(trial_id).reused() or {
                "sweep": str(theirs["name"]),
                "sweep_id": theirs.get("sweep_id"),
                "fingerprint": theirs["fingerprint"],
            }
            _take(other.trial(trial_id).path, folder.trial(trial_id).path, origin)
            taken[trial_id] = str(origin["sweep"])
            del wanted[trial_id]
    return taken


def _comparable_sweeps(
    folder: SweepFolder, manifest: Mapping[str, Any]
) -> Iterator[tuple[SweepFolder, Mapping[str, Any]]]:
    for path in sorted(folder.path.parent.glob("*/sweep.json")):
        other = SweepFolder(path.parent)
        if other.path == folder.path:
            continue
        try:
            theirs = other.manifest()
        except StoreError:
            continue  # another sweep's damage is not ours to report: its records are not used
        known = theirs.get("fingerprint")
        if known is not None and known == manifest.get("fingerprint") and not _attached(theirs):
            yield other, theirs


def _attached(manifest: Mapping[str, Any]) -> bool:
    return manifest["experiment"].get("attach") is not None


def _names(path: Path) -> set[str]:
    return {entry.name for entry in os.scandir(path) if entry.is_dir()}


def _models(manifest: Mapping[str, Any], trial: Trial) -> list[Any]:
    """Target and draft as they were resolved: a name alone may mean other weights by now."""
    models = manifest.get("models") or {}
    return [models.get(name or "") for name in (trial.pair.baseline.target, trial.cell.draft)]


def _take(source: Path, target: Path, origin: Mapping[str, Any]) -> None:
    temporary = target.with_name(f".taking-{target.name}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(source, temporary, copy_function=link_or_copy)
        (temporary / REUSED).unlink(missing_ok=True)
        write_json(temporary / REUSED, dict(origin))
        temporary.replace(target)
    except OSError as error:
        raise StoreError(f"{target}: cannot take over {source}: {error}") from error
