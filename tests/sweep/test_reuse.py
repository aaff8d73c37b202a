"""Equal points are not measured twice, and unlike environments are not mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import EnvironmentChanged
from orchestrator.store.reuse import reuse
from orchestrator.sweep import Finished, Sweep, run_sweep
from tests.sweep.world import Events, RememberingTracker, sweep_of, write_experiment

Change = Callable[[dict[str, Any]], None]


def run(
    tmp_path: Path, name: str, *, change: Change | None = None, again: bool = True, **written: str
) -> tuple[Finished, Events, RememberingTracker]:
    events, tracker = Events(), RememberingTracker()
    file = write_experiment(tmp_path, name=name, **written)
    sweep, _ = sweep_of(file, tmp_path / "r", on_progress=events, tracker=tracker)
    manifest = json.loads(json.dumps(dict(sweep.manifest)))
    if change is not None:
        change(manifest)
    sweep = replace(sweep, manifest=manifest)
    if again:
        sweep = with_reuse(sweep)
    return run_sweep(sweep), events, tracker


def with_reuse(sweep: Sweep) -> Sweep:
    return replace(sweep, reuse=lambda trials: reuse(sweep.folder, sweep.manifest, trials))


def newer_engine(manifest: dict[str, Any]) -> None:
    manifest["fingerprint"] = "another"
    manifest["environment"]["packages"]["vllm"] = "99.0"


def other_weights(manifest: dict[str, Any]) -> None:
    manifest["models"] = {"simulated-8b": {"source": "hub", "revision": "another"}}


def measured(events: Events) -> set[str]:
    return {e.trial.id for e in events.seen if e.kind == "trial_started" and e.trial is not None}


def test_the_same_trials_in_the_same_environment_are_taken_over_and_it_is_said(
    tmp_path: Path,
) -> None:
    first, _, _ = run(tmp_path, "first")
    second, events, tracker = run(tmp_path, "second")
    assert events.kinds().count("trial_reused") == 5  # four cells and, as nothing is left, control
    assert len(second.result.trials) == 4
    assert [t.headline.speedup for t in second.result.trials] == [
        t.headline.speedup for t in first.result.trials
    ]
    assert set(second.result.reused.values()) == {"first"}
    # The best of many is confirmed on this machine now.
    assert measured(events) == {t.trial.id for t in second.result.confirmations}
    assert "5 trials were measured by the sweep first" in second.report.markdown.read_text()
    tags = [run.tags.get("reused_from") for run in tracker.runs.values()]
    assert tags.count("first") == 5


def test_a_wider_grid_measures_what_is_new_and_its_own_control(tmp_path: Path) -> None:
    run(tmp_path, "first", lengths="[2]")
    second, events, _ = run(tmp_path, "second", lengths="[2, 4]")
    assert len(second.result.reused) == 2
    lengths = {t.trial.cell.speculation_length for t in second.result.trials}
    assert lengths == {2, 4}
    assert {t.trial.id for t in second.result.controls} <= measured(events)


@pytest.mark.parametrize("change", [newer_engine, other_weights])
def test_nothing_is_taken_from_another_environment(tmp_path: Path, change: Change) -> None:
    run(tmp_path, "first")
    second, events, _ = run(tmp_path, "second", change=change)
    assert second.result.reused == {}
    assert "trial_reused" not in events.kinds()


def test_fresh_measures_anew(tmp_path: Path) -> None:
    run(tmp_path, "first")
    second, events, _ = run(tmp_path, "second", again=False)
    assert second.result.reused == {}
    assert len(measured(events)) == 6


def test_what_is_taken_over_outlives_the_sweep_it_came_from(tmp_path: Path) -> None:
    import shutil

    run(tmp_path, "first")
    run(tmp_path, "second")
    shutil.rmtree(tmp_path / "r" / "first")
    third, _, _ = run(tmp_path, "third")
    assert set(third.result.reused.values()) == {"first"}  # who measured it, not who kept it


def test_a_search_is_told_what_other_sweeps_know_and_pays_nothing_for_it(tmp_path: Path) -> None:
    run(tmp_path, "first", lengths="[2]")
    search = "search: {algorithm: optuna, trials: 3}"
    second, _, _ = run(tmp_path, "second", lengths="[1, 2, 3, 4]", more=search)
    assert len(second.result.trials) == 2 + 3


def test_a_changed_engine_is_not_mixed_into_a_sweep(tmp_path: Path) -> None:
    run(tmp_path, "story", lengths="[2]")
    with pytest.raises(EnvironmentChanged, match=r"vllm: .*99\.0 now.*--fresh"):
        run(tmp_path, "story", lengths="[2, 4]", change=newer_engine)


def test_a_sweep_that_is_done_is_reported_anywhere_as_it_was_measured(tmp_path: Path) -> None:
    first, _, _ = run(tmp_path, "story")
    again, events, _ = run(tmp_path, "story", change=newer_engine)
    assert measured(events) == set()
    assert again.result.manifest["fingerprint"] == first.result.manifest["fingerprint"]
    assert again.result.manifest["environment"] == first.result.manifest["environment"]


def test_what_is_set_aside_is_kept_and_not_read(tmp_path: Path) -> None:
    first, _, _ = run(tmp_path, "story")
    sweep, _ = sweep_of(tmp_path / "story.yaml", tmp_path / "r")
    aside = sweep.folder.set_aside()
    assert aside is not None
    assert (aside / first.result.trials[0].trial.id / "outcome.json").exists()
    events = Events()
    run_sweep(replace(sweep, on_progress=events))
    assert len(measured(events)) == 6
    assert sweep.folder.set_aside() == aside.with_name("2")
