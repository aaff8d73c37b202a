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
from orchestrator.run.suites.boundary_cases.target import Target, target_of
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.suite import Bench

VERSION = 1
"""Of the cases: raised when what is sent changes."""
REPEATS = 3
"""How often a case is put in all where the arms differ at first sight."""
FLOOD_PER_SEAT = 4
FLOOD_MOST = 1024
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
        notes: list[str] = []
        said: dict[str, Any] = {}
        complete = True
        care = Care(bench)
        try:
            target = self._target(bench)
            for arm in ARMS:
                warm_up(bench, arm)
                care.look("before", arm)
            if target.max_model_len is None:
                notes.append("the longest sequence is not known: cases on lengths were left out")
            for index, case in enumerate(self._cases(target)):
                if not bench.time_left:
                    complete = False
                    notes.append(f"time was up before {case.name}; it and what follows was not run")
                    break
                said[case.name] = {"must": case.must, "timed": case.timed}
                bench.say(f"boundary: {case.name}")
                order = ARMS if index % 2 == 0 else ARMS[::-1]
                notes += self._put(bench, care, case, order)
        except EngineLost as lost:
            complete = False
            notes.append(str(lost))
        return bench.record(self.name, complete=complete, notes=notes, extra={"cases": said})

    def _target(self, bench: Bench) -> Target:
        models = Ask(path="/v1/models", method="GET", headers=(), timeout_s=10)
        (answer,) = bench.asker.ask(bench.subjects.endpoint("baseline"), [models])
        return target_of(bench.baseline, answer)

    def _cases(self, target: Target) -> Sequence[BoundaryCase]:
        flood = min(FLOOD_MOST, FLOOD_PER_SEAT * target.max_num_seqs)
        cases = every_case(target, disconnects=self.disconnects, flood=flood)
        return [case for case in cases if not self.only or case.name in self.only]

    def _put(self, bench: Bench, care: Care, case: BoundaryCase, order: Sequence[Arm]) -> list[str]:
        """One case on both arms; again where they differ, so that chance is not taken for a fault.

        Returns notes.
        """
        notes: list[str] = []
        for repeat in range(REPEATS):
            answers: dict[Arm, list[Answer]] = {}
            died = False
            for arm in order:
                answers[arm], cut = self._ask(bench, case, arm, repeat)
                if cut:
                    notes.append(f"{case.name}, {arm}: time was up after {cut} of {case.rounds}")
                died = not care.look(case.name, arm) or died
            if died or not bench.time_left or not _differ(case, answers):
                break
        return notes

    def _ask(
        self, bench: Bench, case: BoundaryCase, arm: Arm, repeat: int
    ) -> tuple[list[Answer], int]:
        """The answers, and after how many rounds time was up (0: all were run)."""
        asks = case.asks(bench.subjects.endpoint(arm).model)
        put = partial(bench.put, case.name, arm, asks, in_flight=case.in_flight, repeat=repeat)
        answers: list[Answer] = []
        for done in range(case.rounds):
            if done and not bench.time_left:
                return answers, done
            answers += put(parts=case.parts)
        return answers, 0


def _differ(case: BoundaryCase, answers: dict[Arm, list[Answer]]) -> bool:
    """Whether it is worth asking again: other statuses, or much more time on one side."""
    first, second = answers["baseline"], answers["speculative"]
    if Counter(a.status for a in first) != Counter(a.status for a in second):
        return True
    if not case.timed:
        return False
    times = sorted(sum(answer.seconds for answer in each) for each in (first, second))
    return times[1] > TIME_RATIO * times[0] + TIME_DIFFERENCE_S
