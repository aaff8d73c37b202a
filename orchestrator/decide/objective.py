"""What a search looks for, as a number of a trial: from valid pairs, at its conservative end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from orchestrator.analyse.pairs import SPEEDUPS, Pair
from orchestrator.plan.trial import Protocol
from orchestrator.spec.search import lower_is_better

CONFIDENCE = 0.8
"""One-sided. A search ranks cells and may be wrong about one; the verdicts have intervals of their
own, and the best cell is measured once more."""

FEASIBLE = 0.0
"""A constraint's value at its bound; above it the bound is broken."""


@dataclass(frozen=True, slots=True)
class Score:
    """A trial's value of one objective."""

    estimate: float
    """Geometric mean over the pairs that count (arithmetic where a value is 0)."""
    conservative: float
    """The end of the one-sided interval on the worse side; with one pair the estimate itself."""
    pairs: int


@dataclass(frozen=True)
class Scores:
    """Everything a search is told of a trial."""

    objectives: Mapping[str, Score]
    """By objective; one that is undefined in every pair is absent."""
    constraints: Mapping[str, float]
    """By service objective: log(conservative figure / bound); feasible at or below 0."""

    @property
    def feasible(self) -> bool:
        return all(value <= FEASIBLE for value in self.constraints.values())


def scores(
    pairs: Iterable[Pair],
    protocol: Protocol,
    objectives: Sequence[str],
    constraints: Mapping[str, float],
) -> Scores:
    """The objectives and constraints of a trial, from its valid pairs.

    Speedups compare the arms; every other name is a figure of the speculative arm's blocks. A bound
    whose figure is undefined is left out: nothing was seen that breaks it.
    """
    valid = [pair for pair in pairs if pair.valid][: protocol.pairs_max]
    found = {name: _score(valid, name) for name in objectives}
    figures = {name: _score(valid, name) for name in constraints}
    return Scores(
        objectives={name: score for name, score in found.items() if score is not None},
        constraints={
            name: math.log(score.conservative / constraints[name])
            for name, score in figures.items()
            if score is not None and score.conservative > 0
        },
    )


def score_name(objective: str) -> str:
    """The name under which a pair's report carries an objective's conservative end."""
    return f"search_{objective}"


def as_metrics(found: Scores) -> dict[str, float]:
    return {score_name(name): score.conservative for name, score in found.objectives.items()}


def _score(pairs: Sequence[Pair], name: str) -> Score | None:
    if name in SPEEDUPS:
        logs = [pair.log_ratios[name] for pair in pairs if name in pair.log_ratios]
        return _bounded(logs, lower=False, exponential=True)
    metrics = [pair.speculative.as_metrics() for pair in pairs]
    values = [each[name] for each in metrics if name in each]
    if any(value <= 0 for value in values):
        return _bounded(values, lower=lower_is_better(name), exponential=False)
    return _bounded([math.log(v) for v in values], lower=lower_is_better(name), exponential=True)


def _bounded(values: Sequence[float], *, lower: bool, exponential: bool) -> Score | None:
    """Formula: mean -+ t(n - 1) * s / sqrt(n), the sign that makes it worse. Undefined: n = 0."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    reach = 0.0
    if n > 1:
        reach = float(stats.t.ppf(CONFIDENCE, n - 1) * np.std(values, ddof=1)) / math.sqrt(n)
    end = mean + reach if lower else mean - reach
    if exponential:
        return Score(math.exp(mean), math.exp(end), n)
    return Score(mean, max(0.0, end), n)
