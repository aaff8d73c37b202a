"""Evidence, looked at all the time, that something bounded has become larger than is allowed.

A bet against "given the past, x in [0, 1] is at most p on average" multiplies its stake by
1 + f (x - p) / p, which is at least 1 - f and, if the statement holds, at most 1 on average. The
product is an e-process, however the x depend on each other otherwise. Letting it begin anew
whenever that is better gives an e-detector: crossing a level A then takes at least A rounds on
average while the statement holds.

Source: Shin, Ramdas & Rinaldo 2024, "E-detectors: a nonparametric framework for sequential change
detection", New England Journal of Statistics in Data Science 2 (the CUSUM form, and mixtures);
Waudby-Smith & Ramdas 2024, JRSS B 86, for the bets; Page 1954, Biometrika 41, for the recursion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import add
from typing import TypeAlias

BETS = (0.02, 0.07, 0.2, 0.45, 0.8)
"""Fractions of the stake that can be lost at once. Small ones find small excesses, large ones find
large excesses soon; all of them are made, each with an equal share."""
P_MIN, P_MAX = 1e-4, 0.98

LogFactors: TypeAlias = tuple[float, ...]
"""The logarithm of what each of BETS has become, shape (bets,)."""

NOTHING: LogFactors = (0.0,) * len(BETS)


LOSSES: LogFactors = tuple(math.log1p(-f) for f in BETS)


@lru_cache(maxsize=4096)
def _gains(p: float) -> LogFactors:
    return tuple(math.log1p(f * (1 - p) / p) for f in BETS)


def of_counts(hits: int, of: int, allowed: float) -> LogFactors:
    """Log factors after `of` events with `hits` among them, of which a share `allowed` is borne."""
    misses = of - hits
    gains = _gains(min(max(allowed, P_MIN), P_MAX))
    return tuple(hits * gain + misses * loss for gain, loss in zip(gains, LOSSES, strict=True))


def of_value(x: float, allowed: float) -> LogFactors:
    """Log factors after one observation in [0, 1]."""
    p = min(max(allowed, P_MIN), P_MAX)
    return tuple(math.log1p(f * (x - p) / p) for f in BETS)


def added(first: LogFactors, second: LogFactors) -> LogFactors:
    return tuple(map(add, first, second))


class Detector:
    """One e-detector: fed once a round with the round's log factors, it keeps its evidence."""

    __slots__ = ("_began_s", "_sums", "restarting")

    def __init__(self, *, restarting: bool = True) -> None:
        self.restarting = restarting
        """False: a plain e-process, of which Ville's inequality says that it ever exceeds 1/alpha
        with a probability of at most alpha."""
        self._sums = [0.0] * len(BETS)
        self._began_s: list[float | None] = [None] * len(BETS)

    def update(self, at_s: float, factors: LogFactors, count: int, *, worth: float) -> None:
        """A round ended at `at_s`, with `count` observations that are worth at most `worth`.

        Those of a round share its circumstances, so they are not so many separate ones: their
        product is raised to min(1, worth / count). A power below 1 of an e-value is an e-value
        (Jensen), and one over groups of equal circumstances is a geometric mean of e-values.
        A round without observations changes nothing.
        """
        if not count:
            return
        damping = min(1.0, worth / count)
        for index, factor in enumerate(factors):
            before = self._sums[index]
            if before <= 0.0 and self.restarting:
                before, self._began_s[index] = 0.0, at_s
            self._sums[index] = before + damping * factor

    @property
    def log_evidence(self) -> float:
        """ln of the mean over the bets."""
        return log_mean_exp(self._sums)

    @property
    def began_s(self) -> float | None:
        """When the run began that the strongest bet now rests on: an estimate of the change."""
        strongest = max(range(len(self._sums)), key=self._sums.__getitem__)
        return self._began_s[strongest]


def log_mean_exp(values: Sequence[float]) -> float:
    """ln of the mean of e^v, without overflow: the mean of evidence is evidence."""
    top = max(values)
    return top + math.log(sum([math.exp(v - top) for v in values]) / len(values))
