"""A search at work: what runs next, what is stopped, when it is over.

Holds no clock: whoever runs the trials says what time it is. What it decides depends on the seed
and on what it is told, in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orchestrator.decide.objective import Scores, score_name
from orchestrator.plan.trial import Trial
from orchestrator.ports import PairReport
from orchestrator.records import Outcome
from orchestrator.search.budget import Budget
from orchestrator.search.halting import Halting, NeverHalting
from orchestrator.search.proposer import End, Proposer, Told
from orchestrator.search.starts import Starts
from orchestrator.spec.search import lower_is_better


@dataclass(frozen=True)
class Known:
    """A comparison that had ended before the search began."""

    trial: Trial
    outcome: Outcome
    scores: Scores
    history: Sequence[tuple[int, float]] = ()
    """(valid pairs, conservative end of the first objective) after each of them."""
    reused: bool = False
    """Measured by another sweep: it costs this one nothing."""


ScoresOf = Callable[[Trial], Scores]
"""Reads a trial's scores from its records."""


@dataclass
class Steering:
    """Implements ports.Steering over a proposer, a rule for stopping, and a budget."""

    candidates: Sequence[Trial]
    """Every comparison of the plan, in the plan's order: what is left and what is known."""
    todo: Sequence[Trial]
    """What may run: the control and whatever else is no comparison runs first and always."""
    known: Sequence[Known]
    objectives: Sequence[str]
    proposer: Proposer
    scores_of: ScoresOf
    halting: Halting = field(default_factory=NeverHalting)
    budget: Budget = field(default_factory=Budget)
    starts: Starts = field(default_factory=lambda: Starts(assumed=0.0))
    first: Sequence[str] = ()
    spared: frozenset[str] = frozenset()
    """Trials that were stopped before and were asked for again: only a budget stops them now."""
    over: str | None = None
    """Why the search ended before every cell was measured; None while it has not, or did not."""

    def __post_init__(self) -> None:
        self._index = {trial.id: index for index, trial in enumerate(self.candidates)}
        self._pair_key = [trial.pair.key for trial in self.candidates]
        by_id = {trial.id: trial for trial in self.todo}
        self._always = [trial for trial in self.todo if trial.id not in self._index]
        self._left = {self._index[trial_id] for trial_id in by_id if trial_id in self._index}
        self._first = [self._index[i] for i in self.first if self._index.get(i) in self._left]
        self._began: dict[str, float] = {}
        self._on_warm: set[str] = set()
        self._warm: str | None = None
        self._pair_s = 0.0
        self._trials = 0
        self.known_before = len(self.known)
        for known in self.known:
            if not known.reused:
                self._pair_s += known.outcome.wall_s or 0.0
                self._trials += 1
            index = self._index.get(known.trial.id)
            if index is not None:
                for pairs, value in known.history:
                    self.halting.behind(index, pairs, self._upwards(value))
            self._tell(known.trial, known.outcome, known.scores)

    @property
    def trials_begun(self) -> int:
        return self._trials

    @property
    def pair_s(self) -> float:
        """Seconds that device pairs were held by comparisons that have ended."""
        return self._pair_s

    def next(self, now_s: float) -> Trial | None:
        """The trial to begin now; None: no more is begun."""
        if self._always:
            return self._begin(self._always.pop(0), now_s)
        if not self._left:
            return None
        self.over = self.budget.over(trials=self._trials, pair_s=self._spent_s(now_s))
        if self.over is not None:
            return None
        index = self._first.pop(0) if self._first else self._proposed()
        self._left.discard(index)
        self._trials += 1
        return self._begin(self.candidates[index], now_s)

    def after_pair(self, report: PairReport, now_s: float) -> str | None:
        """Why the trial that reports is to be stopped; None: it goes on, or ends by itself."""
        index = self._index.get(report.trial_id)
        if index is None:
            return None
        spent = self.budget.time_over(pair_s=self._spent_s(now_s))
        if spent is not None and not report.ends:
            self.over = spent
            return f"the search's budget: {spent}"
        value = report.metrics.get(score_name(self.objectives[0]))
        pairs = int(report.metrics.get("valid_pairs", 0))
        if value is None or not pairs or len(self.objectives) > 1 or report.trial_id in self.spared:
            return None
        behind = self.halting.behind(index, pairs, self._upwards(value))
        return None if report.ends else behind

    def ended(self, outcome: Outcome, now_s: float) -> None:
        """A trial that was begun here has ended."""
        began = self._began.pop(outcome.trial_id, now_s)
        index = self._index.get(outcome.trial_id)
        if index is None:
            return
        self._pair_s += now_s - began
        self.starts.saw(outcome, warm=outcome.trial_id in self._on_warm)
        trial = self.candidates[index]
        self._tell(trial, outcome, self.scores_of(trial))

    def summary(self) -> dict[str, object]:
        """For the records: what was searched, and why it ended."""
        return {
            "candidates": len(self.candidates),
            "known_before": self.known_before,
            "begun": self._trials,
            "pair_s": self._pair_s,
            "over": self.over,
        }

    def _upwards(self, value: float) -> float:
        return -value if lower_is_better(self.objectives[0]) else value

    def _begin(self, trial: Trial, now_s: float) -> Trial:
        self._began[trial.id] = now_s
        if trial.pair.key == self._warm:
            self._on_warm.add(trial.id)
        self._warm = trial.pair.key
        return trial

    def _proposed(self) -> int:
        left = sorted(self._left)
        warm = frozenset(index for index in left if self._pair_key[index] == self._warm)
        return self.proposer.propose(left, warm, self.starts.turn)

    def _spent_s(self, now_s: float) -> float:
        running = sum(
            now_s - began for trial_id, began in self._began.items() if trial_id in self._index
        )
        return self._pair_s + running

    def _tell(self, trial: Trial, outcome: Outcome, scores: Scores) -> None:
        index = self._index.get(trial.id)
        if index is None:
            return
        self._left.discard(index)
        self.halting.ended(index)
        found = [scores.objectives.get(name) for name in self.objectives]
        values = tuple(score.conservative for score in found if score is not None)
        whole = len(values) == len(self.objectives)
        pairs = min((score.pairs for score in found if score is not None), default=0)
        self.proposer.tell(
            Told(
                index=index,
                end=_end(outcome, whole),
                values=values if whole else None,
                constraints=scores.constraints,
                pairs=pairs,
            )
        )


def _end(outcome: Outcome, whole: bool) -> End:
    """A cell without a value is as good as failed: there is nothing to learn but to keep away."""
    if outcome.status == "failed" or not whole:
        return "failed"
    return "finished" if outcome.status == "finished" else "stopped"
