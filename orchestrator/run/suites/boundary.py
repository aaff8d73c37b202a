"""Boundary and abnormal input: odd requests to both arms, and how the arms are afterwards.

Which of it is a finding says `analyse.suites.boundary`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from orchestrator.ports import Answer, Ask
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.after_case import Care, EngineLost, warm_up
from orchestrator.run.suites.boundary_cases import every_case
from orchestrator.run.suites.boundary_cases.case import BoundaryCase
from orchestrator.run.suites.boundary_cases.target import target_of
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.suite import Bench

VERSION = 2
"""Of the cases: raised when what is sent changes."""
REPEATS = 3
"""How often a case is put in all where the arms differ at first sight."""
FLOOD_PER_SEAT = 4
FLOOD_MOST = 1024
LONGEST_SHARE = 0.1
"""Of the suite's time, for one case on one arm: after so much it begins no further round."""
TIME_RATIO = 1.5
TIME_DIFFERENCE_S = 0.5


@dataclass(frozen=True)
class BoundarySuite:
    """Every case on both arms, alternating which goes first; a dead engine is started again."""

    disconnects: int = 2000
    """Clients that vanish, in all, in the case that counts them in thousands."""
    only: tuple[str, ...] = ()
    """Names of cases; empty: all."""
    name: str = field(default="boundary", init=False)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"version": VERSION, "disconnects": self.disconnects, "only": list(self.only)}

    def run(self, bench: Bench) -> SuiteRecord:
        sending = _Sending(bench, self)
        complete = sending.run()
        return bench.record(
            self.name, complete=complete, notes=sending.notes, extra={"cases": sending.told}
        )


class _Sending:
    """One run of the suite."""

    def __init__(self, bench: Bench, suite: BoundarySuite) -> None:
        self.bench, self.suite = bench, suite
        self.care = Care(bench)
        self.notes: list[str] = []
        self.told: dict[str, Any] = {}
        self._order = ARMS

    def run(self) -> bool:
        """Whether every case was put to both arms."""
        try:
            cases = self._begin()
            doubtful: list[BoundaryCase] = []
            for case in cases:
                if not self.bench.time_left:
                    self.notes.append(
                        f"time was up before {case.name}; it and what follows was not run"
                    )
                    return False
                self.told[case.name] = {"must": case.must, "timed": case.timed}
                self.bench.say(f"boundary: {case.name}")
                if self._put(case):
                    doubtful.append(case)
            self._put_again(doubtful)
        except EngineLost as lost:
            self.notes.append(str(lost))
            return False
        return True

    def _begin(self) -> Sequence[BoundaryCase]:
        bench, suite = self.bench, self.suite
        models = Ask(path="/v1/models", method="GET", headers=(), timeout_s=10)
        (answer,) = bench.asker.ask(bench.subjects.endpoint("baseline"), [models])
        target = target_of(bench.baseline, answer)
        for arm in ARMS:
            warm_up(bench, arm)
            self.care.look("before", arm)
        if target.max_model_len is None:
            self.notes.append("the longest sequence is not known: cases on lengths were left out")
        flood = min(FLOOD_MOST, FLOOD_PER_SEAT * target.max_num_seqs)
        cases = every_case(target, disconnects=suite.disconnects, flood=flood)
        return [case for case in cases if not suite.only or case.name in suite.only]

    def _put_again(self, doubtful: Sequence[BoundaryCase]) -> None:
        """Where the arms differed, so that chance is not taken for a fault; after all the rest, so
        that every case is put once whatever time there is."""
        for repeat in range(1, REPEATS):
            still: list[BoundaryCase] = []
            for case in doubtful:
                if not self.bench.time_left:
                    put = "once" if repeat == 1 else "twice"
                    self.notes.append(f"time was up: {case.name} was put {put} of {REPEATS} times")
                    continue
                self.bench.say(f"boundary: {case.name}, once more")
                if self._put(case, repeat):
                    still.append(case)
            doubtful = still

    def _put(self, case: BoundaryCase, repeat: int = 0) -> bool:
        """One case on both arms; says whether it is worth asking again."""
        answers: dict[Arm, list[Answer]] = {}
        died = False
        for arm in self._order:
            answers[arm], rounds = self._ask(case, arm, repeat)
            if rounds < case.rounds:
                self.notes.append(
                    f"{case.name}, {arm}: {rounds} of {case.rounds} rounds in its share of the time"
                )
            died = not self.care.look(case.name, arm) or died
        self._order = self._order[::-1]
        return not died and _differ(case, answers)

    def _ask(self, case: BoundaryCase, arm: Arm, repeat: int) -> tuple[list[Answer], int]:
        """The answers, and how many rounds were run in the case's share of the time."""
        bench = self.bench
        asks = case.asks(bench.model(arm))
        put = partial(bench.put, case.name, arm, asks, in_flight=case.in_flight, repeat=repeat)
        answers: list[Answer] = []
        began_s, share_s = bench.now(), LONGEST_SHARE * bench.limit_s
        for done in range(case.rounds):
            if done and bench.now() - began_s >= share_s:
                return answers, done
            answers += put(parts=case.parts)
        return answers, case.rounds


def _differ(case: BoundaryCase, answers: dict[Arm, list[Answer]]) -> bool:
    """Whether it is worth asking again: other statuses, or much more time on one side."""
    first, second = answers["baseline"], answers["speculative"]
    if Counter(a.status for a in first) != Counter(a.status for a in second):
        return True
    if not case.timed:
        return False
    times = sorted(sum(answer.seconds for answer in each) for each in (first, second))
    return times[1] > TIME_RATIO * times[0] + TIME_DIFFERENCE_S
