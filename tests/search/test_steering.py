"""What a search runs, tells and stops, with a clock that is handed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan.trial import Trial
from orchestrator.ports import PairReport
from orchestrator.records import Outcome
from orchestrator.search.budget import Budget
from orchestrator.search.proposer import GridProposer, RandomProposer, Told
from orchestrator.search.starts import Starts
from orchestrator.search.steering import Known, Steering
from tests.search.cells import SPEEDUP, comparisons, failed, finished, scored

CELLS = comparisons()


@dataclass
class Listening(GridProposer):
    told: list[Told] = field(default_factory=list)

    def tell(self, told: Told) -> None:
        self.told.append(told)


@dataclass
class Halts:
    """Stops whoever shows less than 1."""

    seen: list[tuple[int, int, float]] = field(default_factory=list)

    def behind(self, index: int, pairs: int, value: float) -> str | None:
        self.seen.append((index, pairs, value))
        return "behind" if value < 1 else None

    def ended(self, index: int) -> None:
        """Nothing."""


def steering(**given_: object) -> Steering:
    values: dict[str, object] = {
        "candidates": CELLS,
        "todo": CELLS,
        "known": (),
        "objectives": (SPEEDUP,),
        "proposer": GridProposer(),
        "scores_of": lambda trial: scored(1.2),
    }
    return Steering(**{**values, **given_})  # type: ignore[arg-type]


def walk(search: Steering, seconds: float = 10.0) -> list[Trial]:
    """Every trial takes so long and finishes."""
    now, run = 0.0, []
    while (trial := search.next(now)) is not None:
        run.append(trial)
        now += seconds
        search.ended(finished(trial), now)
    return run


def report(trial: Trial, value: float | None, *, ends: bool = False) -> PairReport:
    metrics = {"valid_pairs": 2.0} | ({} if value is None else {f"search_{SPEEDUP}": value})
    return PairReport(trial.id, 2, 24, metrics, ends)


def test_without_a_budget_every_cell_is_run_once() -> None:
    assert walk(steering()) == CELLS


def test_what_is_no_comparison_runs_first_and_outside_the_budget() -> None:
    control = CELLS[0].confirmation()
    search = steering(todo=[*CELLS, control], budget=Budget(trials=2))
    assert walk(search) == [control, *CELLS[:2]]
    assert search.over == "2 trials were begun"


def test_points_to_try_first_come_before_the_proposer_unless_they_are_known() -> None:
    known = [Known(CELLS[5], finished(CELLS[5]), scored(1.1))]
    todo = [cell for cell in CELLS if cell is not CELLS[5]]
    search = steering(todo=todo, known=known, first=[CELLS[5].id, CELLS[9].id])
    assert walk(search)[:2] == [CELLS[9], CELLS[0]]


def test_the_proposer_is_told_everything_with_how_it_ended() -> None:
    listening = Listening()
    known = [
        Known(CELLS[0], finished(CELLS[0]), scored(1.5, {"ttft_p99_s": 0.2})),
        Known(CELLS[1], failed(CELLS[1]), scored(None)),
    ]
    search = steering(todo=CELLS[2:3], known=known, proposer=listening)
    walk(search)
    assert [(t.index, t.end, t.values) for t in listening.told] == [
        (0, "finished", (1.5,)),
        (1, "failed", None),
        (2, "finished", (1.2,)),
    ]
    assert listening.told[0].constraints == {"ttft_p99_s": 0.2}


def test_a_cell_without_a_value_is_told_as_failed() -> None:
    listening = Listening()
    walk(steering(todo=CELLS[:1], proposer=listening, scores_of=lambda trial: scored(None)))
    assert [t.end for t in listening.told] == ["failed"]


def test_time_counts_over_runs_and_what_another_sweep_measured_costs_nothing() -> None:
    # 0.1 device-hours of a pair on 2 devices: 180 s; 100 s are spent, so 8 trials of 10 s fit.
    budget = Budget(device_hours=0.1, devices_per_pair=2.0)
    known = [
        Known(CELLS[0], finished(CELLS[0], wall_s=100.0), scored(1.1)),
        Known(CELLS[1], finished(CELLS[1], wall_s=900.0), scored(1.1), reused=True),
    ]
    search = steering(todo=CELLS[2:], known=known, budget=budget)
    assert len(walk(search)) == 8
    assert search.over == "0.1 device-hours are spent"


def test_minutes_are_over_the_pairs_measured_at_once() -> None:
    budget = Budget(minutes=1, pairs_at_once=2)  # 120 s of pairs
    assert len(walk(steering(budget=budget))) == 12


def test_a_time_budget_stops_what_runs_at_its_next_pair_but_not_at_its_last() -> None:
    search = steering(budget=Budget(minutes=1))
    trial = search.next(0.0)
    assert trial is not None
    assert search.after_pair(report(trial, 1.2), 59.0) is None
    assert search.after_pair(report(trial, 1.2, ends=True), 61.0) is None
    said = search.after_pair(report(trial, 1.2), 61.0)
    assert said == "the search's budget: 1 minutes are spent"


def test_a_cell_that_is_behind_is_stopped_unless_it_ends_by_itself_or_was_asked_for() -> None:
    halts = Halts()
    search = steering(halting=halts, spared=frozenset({CELLS[2].id}))
    for _ in range(3):
        search.next(0.0)
    assert search.after_pair(report(CELLS[0], 0.9), 1.0) == "behind"
    assert search.after_pair(report(CELLS[1], 0.9, ends=True), 1.0) is None
    assert search.after_pair(report(CELLS[2], 0.9), 1.0) is None
    assert search.after_pair(report(CELLS[0], None), 1.0) is None
    assert halts.seen == [(0, 2, 0.9), (1, 2, 0.9)]


def test_less_is_better_is_turned_round_for_the_rule_that_stops() -> None:
    halts = Halts()
    search = steering(halting=halts, objectives=("tpot_p95_s",))
    trial = search.next(0.0)
    assert trial is not None
    slow = PairReport(trial.id, 2, 24, {"valid_pairs": 2.0, "search_tpot_p95_s": 0.05})
    assert search.after_pair(slow, 1.0) == "behind"
    assert halts.seen == [(0, 2, -0.05)]


def test_what_is_known_is_replayed_to_the_rule_that_stops() -> None:
    halts = Halts()
    known = [Known(CELLS[3], finished(CELLS[3]), scored(1.1), history=((1, 1.0), (2, 1.1)))]
    steering(todo=CELLS[4:], known=known, halting=halts)
    assert halts.seen == [(3, 1, 1.0), (3, 2, 1.1)]


@given(
    seed=st.integers(0, 2**32),
    trials=st.integers(1, 30),
    assumed=st.floats(0, 9),
    before=st.sets(st.integers(0, len(CELLS) - 1)),
)
def test_whatever_is_drawn_no_cell_runs_twice_and_none_is_begun_beyond_the_budget(
    seed: int, trials: int, assumed: float, before: set[int]
) -> None:
    known = [Known(CELLS[i], finished(CELLS[i]), scored(1.0)) for i in sorted(before)]
    todo = [cell for i, cell in enumerate(CELLS) if i not in before]
    proposer = RandomProposer(Random(seed))
    search = steering(
        todo=todo,
        known=known,
        proposer=proposer,
        budget=Budget(trials=trials),
        starts=Starts(assumed),
    )
    run = walk(search)
    ids = [trial.id for trial in run]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {CELLS[i].id for i in before}
    assert len(ids) == min(len(todo), max(0, trials - len(before)))


def test_an_even_draw_does_not_prefer_any_cell() -> None:
    counts = [0] * len(CELLS)
    for seed in range(600):
        search = steering(
            proposer=RandomProposer(Random(seed)), budget=Budget(trials=6), starts=Starts(3.0)
        )
        for trial in walk(search):
            counts[CELLS.index(trial)] += 1
    # 600 draws of 6 of 24: 150 each on average, standard deviation 10.6.
    assert all(150 - 5 * 10.6 < count < 150 + 5 * 10.6 for count in counts)


def test_the_turn_follows_what_starts_and_trials_took() -> None:
    starts = Starts(assumed=0.0)
    assert starts.turn == 1
    starts.saw(Outcome("a", "finished", wall_s=30.0, waiting_s=20.0), warm=False)
    assert starts.turn == 3  # 20 s beside 10 s
    starts.saw(Outcome("b", "finished", wall_s=10.0, waiting_s=0.0), warm=True)
    assert starts.turn == 3  # a trial on a warm engine says nothing of starts
    starts.saw(Outcome("c", "stopped"), warm=False)
    assert starts.turn == 3  # one that does not say where its time went says nothing
    starts.saw(Outcome("d", "finished", wall_s=1000.0, waiting_s=990.0), warm=False)
    assert starts.turn == 8
    assert Starts(assumed=1.4).turn == 2
