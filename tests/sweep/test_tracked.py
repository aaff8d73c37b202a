"""What MLflow is given: flat parameters that line up, and what follows from them as tags."""

from __future__ import annotations

from pathlib import Path

from tests.sweep.world import RememberingTracker, run_story, write_experiment


def test_numbers_that_differ_between_cells_are_those_of_the_grid(tmp_path: Path) -> None:
    tracker = RememberingTracker()
    run_story(write_experiment(tmp_path), tmp_path / "r", tracker=tracker)
    runs = [run for run in tracker.runs.values() if run.tags["kind"] == "comparison"]
    names = {frozenset(run.params) for run in runs}
    assert len(names) == 1  # the same parameters on every run
    differing = {
        name
        for name in next(iter(names))
        if len({str(run.params[name]) for run in runs}) > 1
        and isinstance(runs[0].params[name], int | float)
    }
    assert differing == {"batch_size", "speculation_length"}


def test_steps_are_the_pairs_and_the_summary_has_its_interval(tmp_path: Path) -> None:
    tracker = RememberingTracker()
    finished = run_story(write_experiment(tmp_path), tmp_path / "r", tracker=tracker)
    for trial in finished.result.trials:
        run = tracker.runs[trial.trial.id]
        assert len(run.steps) == len(trial.pairs)
        low, high = run.metrics["speedup_throughput_low"], run.metrics["speedup_throughput_high"]
        assert low <= run.metrics["speedup_throughput"] <= high
        assert run.metrics["acceptance_length"] == trial.acceptance_length
        assert run.dataset is not None
        assert run.dataset.digest
