"""A search from end to end on simulated engines: what it measures, stops, keeps and says."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.records import Outcome
from orchestrator.store import SweepFolder
from orchestrator.sweep import Finished, run_sweep
from tests.sweep.world import Events, RememberingTracker, run_story, sweep_of, write_experiment

LENGTHS = "[1, 2, 3, 4, 5, 6]"  # with two batch sizes: 12 cells
NOISY = "{profile: fast, acceptance: 0.8, slow_jitter_sigma: 0.02}"

MINUTES = 0.0005


def searched(tmp_path: Path, search: str, **changes: str) -> tuple[Finished, Events]:
    events = Events()
    file = write_experiment(
        tmp_path, lengths=LENGTHS, simulated=NOISY, more=f"search: {search}", **changes
    )
    return run_story(file, tmp_path / "r", on_progress=events), events


def started(events: Events) -> list[str]:
    return [e.trial.id for e in events.seen if e.kind == "trial_started" and e.trial is not None]


def outcomes(finished: Finished) -> list[Outcome]:
    return [trial.outcome for trial in finished.result.trials if trial.outcome is not None]


@pytest.mark.parametrize("algorithm", ["random", "optuna"])
def test_so_many_trials_are_begun_and_no_more_however_often_it_is_run(
    tmp_path: Path, algorithm: str
) -> None:
    search = f"{{algorithm: {algorithm}, trials: 5}}"
    finished, events = searched(tmp_path, search)
    assert len(finished.result.trials) == 5
    assert len(finished.result.controls) == 1
    assert finished.result.search is not None
    assert finished.result.search.not_proposed == 7
    assert finished.result.search.over == "5 trials were begun"
    assert events.kinds().count("trial_started") == 5 + 1 + len(finished.result.confirmations)
    again, quiet = searched(tmp_path, search)
    assert started(quiet) == []
    assert len(again.result.trials) == 5


def test_the_points_to_try_first_are_tried_first(tmp_path: Path) -> None:
    first = "[{speculation_length: 6, batch_size: 4}, {speculation_length: 5}]"
    _, events = searched(tmp_path, f"{{algorithm: optuna, trials: 4, first: {first}}}")
    cells = [e.trial.cell for e in events.seen if e.kind == "trial_started" and e.trial is not None]
    assert [(c.speculation_length, c.batch_size) for c in cells[1:4]] == [(6, 4), (5, 1), (5, 4)]


def test_a_search_goes_on_with_what_it_knows_and_measures_nothing_twice(tmp_path: Path) -> None:
    _, before = searched(tmp_path, "{algorithm: optuna, trials: 4}")
    finished, after = searched(tmp_path, "{algorithm: optuna, trials: 9}")
    cells = {trial.trial.id for trial in finished.result.trials}
    assert len(cells) == 9
    confirmed = {trial.trial.id for trial in finished.result.confirmations}
    assert not (set(started(before)) & set(started(after))) - confirmed


def test_asha_stops_cells_that_fall_behind_keeps_their_pairs_and_says_so(tmp_path: Path) -> None:
    finished, _ = searched(tmp_path, "{algorithm: grid, scheduler: asha}")
    ends = outcomes(finished)
    assert len(ends) == 12
    stopped = [end for end in ends if end.status == "stopped"]
    assert 3 <= len(stopped) < 12
    assert all(end.cause and end.cause.startswith("asha: behind the others") for end in stopped)
    assert all(end.pairs_measured >= 2 for end in stopped)
    folder = SweepFolder(tmp_path / "r" / "story")
    assert all(len(folder.trial(e.trial_id).pairs()) == e.pairs_measured for e in stopped)
    assert "asha: behind the others after 2 valid pairs" in finished.report.markdown.read_text()


def test_a_stopped_trial_runs_again_only_when_asked_and_is_then_not_stopped(tmp_path: Path) -> None:
    finished, _ = searched(tmp_path, "{algorithm: grid, scheduler: asha}")
    stopped = {end.trial_id for end in outcomes(finished) if end.status == "stopped"}
    _, quiet = searched(tmp_path, "{algorithm: grid, scheduler: asha}")
    assert started(quiet) == []
    file = tmp_path / "story.yaml"
    events = Events()
    sweep, _ = sweep_of(file, tmp_path / "r", on_progress=events, retry_stopped=True)
    again = run_sweep(sweep)
    assert stopped <= set(started(events))
    assert {end.status for end in outcomes(again)} == {"finished"}


def test_a_time_budget_stops_the_trial_in_flight_between_two_pairs(tmp_path: Path) -> None:
    # One trial takes at least three pairs of 24 tokens at 1 ms a token, so more than 0.07 s.
    finished, _ = searched(tmp_path, f"{{algorithm: grid, minutes: {MINUTES}}}")
    ends = outcomes(finished)
    assert [end.status for end in ends] == ["stopped"]
    assert ends[0].cause == "the search's budget: 0.0005 minutes are spent"
    assert ends[0].pairs_measured == 1
    assert finished.result.search is not None
    assert finished.result.search.over == "0.0005 minutes are spent"


def test_several_objectives_end_in_a_front_of_cells_that_nothing_beats(tmp_path: Path) -> None:
    search = "{algorithm: optuna, trials: 8, objective: [output_tok_per_s, tpot_mean_s]}"
    finished, _ = searched(tmp_path, search)
    found = finished.result.search
    assert found is not None
    assert found.best is None
    batches = {t.trial.id: t.trial.cell.batch_size for t in finished.result.trials}
    # One request alone is quickest, four together yield more: both ends are on the front.
    assert {batches[trial_id] for trial_id in found.front} == {1, 4}
    assert "Pareto front" in finished.report.markdown.read_text()


def test_a_cell_that_breaks_the_service_objectives_is_not_the_best(tmp_path: Path) -> None:
    search = "{algorithm: optuna, trials: 12, objective: output_tok_per_s}"
    free, _ = searched(tmp_path, search)
    assert free.result.search is not None
    best = {t.trial.id: t for t in free.result.trials}[str(free.result.search.best)]
    assert best.trial.cell.batch_size == 4
    tpot = {
        t.trial.cell.batch_size: t.figures["speculative"]["tpot_p95_s"] for t in free.result.trials
    }
    assert tpot[1] < tpot[4]
    bound = (max(tpot[1], 1e-9) + tpot[4]) / 2
    bounded, _ = searched(tmp_path, f"{search}\nslo: {{tpot_p95_s: {bound}}}", name="bounded")
    assert bounded.result.search is not None
    chosen = {t.trial.id: t for t in bounded.result.trials}[str(bounded.result.search.best)]
    assert chosen.trial.cell.batch_size == 1


def test_a_cell_that_failed_is_told_as_failed_and_not_proposed_again(tmp_path: Path) -> None:
    file = write_experiment(
        tmp_path,
        lengths=LENGTHS,
        simulated="{profile: fast, speculative: {faults: {start_failure: start_failed}}}",
        more="search: {algorithm: optuna, trials: 12}",
    )
    events, tracker = Events(), RememberingTracker()
    finished = run_story(file, tmp_path / "r", on_progress=events, tracker=tracker)
    assert sum(trial.failed for trial in finished.result.trials) >= 6
    assert len(set(started(events))) == len(started(events))
    quiet = Events()
    run_story(file, tmp_path / "r", on_progress=quiet)
    assert started(quiet) == []
