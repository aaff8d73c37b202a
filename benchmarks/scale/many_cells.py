"""A stored sweep of many cells, out of the records of a smaller one: links, so that it is quick."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

from orchestrator.cli.preparation import prepare
from orchestrator.cli.sweep import manifest_of
from orchestrator.store import SweepFolder


def write_cells(file: Path, measured: Path, target: Path) -> None:
    """The cells of `file` under `target`, each with the records of some trial in `measured`."""
    prepared = prepare(file, offline=True)
    source, folder = SweepFolder(measured), SweepFolder(target)
    folder.begin(manifest_of(prepared, folder))
    folder.save_trials(prepared.plan.trials)
    origins = [source.trial(t.id) for t in source.trials() if t.kind == "comparison"]
    for trial, origin in zip(prepared.plan.trials, itertools.cycle(origins), strict=False):
        own = folder.trial(trial.id)
        own.blocks_path.mkdir(parents=True)
        for path in origin.blocks_path.iterdir():
            os.link(path, own.blocks_path / path.name)
        os.link(origin.path / "engines.json", own.path / "engines.json")
        outcome = origin.outcome()
        assert outcome is not None
        own.save_outcome(replace(outcome, trial_id=trial.id))
