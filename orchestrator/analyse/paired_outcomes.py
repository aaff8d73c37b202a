"""Yes-or-no outcomes of the same tasks in both arms: worse, better, or equally good?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from scipy import optimize, stats

from orchestrator.analyse.exact_tests import mcnemar


class Comparison(StrEnum):
    """What may be said of the speculative arm beside the baseline."""

    LOWER = "lower"
    HIGHER = "higher"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The four cells of a paired table."""

    both: int
    only_baseline: int
    only_speculative: int
    neither: int

    @property
    def pairs(self) -> int:
        return self.both + self.only_baseline + self.only_speculative + self.neither

    @property
    def difference(self) -> float | None:
        """Formula: share in the speculative arm − share in the baseline. Undefined: no pairs."""
        if not self.pairs:
            return None
        return (self.only_speculative - self.only_baseline) / self.pairs


@dataclass(frozen=True, slots=True)
class OutcomeComparison:
    """The two arms' shares compared, and everything that rests on."""

    comparison: Comparison
    counts: OutcomeCounts
    baseline_share: float | None
    speculative_share: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float
    """Exact McNemar, two-sided."""
    margin: float
    level: float


def paired_counts(
    baseline: Mapping[str, bool | None], speculative: Mapping[str, bool | None]
) -> OutcomeCounts:
    """Counts over the tasks that have an outcome in both arms."""
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for task, mine in baseline.items():
        its = speculative.get(task)
        if mine is not None and its is not None:
            cells[mine, its] += 1
    return OutcomeCounts(
        both=cells[True, True],
        only_baseline=cells[True, False],
        only_speculative=cells[False, True],
        neither=cells[False, False],
    )


def majority(repeats: Iterable[bool]) -> bool | None:
    """The outcome that most repeats of one task have. Undefined: None at a tie, or without any."""
    outcomes = list(repeats)
    balance = 2 * sum(outcomes) - len(outcomes)
    return None if balance == 0 else balance > 0


def compare_outcomes(
    counts: OutcomeCounts, *, margin: float = 0.05, level: float = 0.05
) -> OutcomeComparison:
    """Two one-sided tests against the margin first, then the difference itself.

    Formula: no practical difference when the 1 − 2·level score interval of the difference lies
        strictly within ±margin (TOST at `level`); else lower or higher when the exact McNemar test
        is at or below `level` and the 1 − level interval excludes 0; else cannot tell.
    Unit: shares, 0 to 1; margin likewise.
    Raises: ValueError for a margin or level outside (0, 1).
    Source: Tango 1998, Statistics in Medicine 17; Schuirmann 1987, J. Pharmacokin. Biopharm. 15.
    """
    if not (0 < margin < 1 and 0 < level < 0.5):
        raise ValueError(
            f"`0 < margin < 1` and `0 < level < 0.5` must hold, got {margin} and {level}"
        )
    interval = difference_interval(counts, 1 - level)
    narrow = difference_interval(counts, 1 - 2 * level)
    p_value = mcnemar(counts.only_speculative, counts.only_baseline)
    pairs = counts.pairs
    return OutcomeComparison(
        comparison=_comparison(narrow, interval, p_value, margin, level),
        counts=counts,
        baseline_share=(counts.both + counts.only_baseline) / pairs if pairs else None,
        speculative_share=(counts.both + counts.only_speculative) / pairs if pairs else None,
        difference=counts.difference,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        p_value=p_value,
        margin=margin,
        level=level,
    )


def difference_interval(
    counts: OutcomeCounts, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Score interval of a paired difference of shares; sensible even when no pair differs.

    Formula: the d at which |b − c − n d| / √(n (2 q + d (1 − d))) = z, with b and c the pairs that
        only the speculative arm and only the baseline has, and q the likelihood's estimate of c/n
        under that d.
    Undefined: None without pairs.
    Source: Tango 1998, Statistics in Medicine 17, 891.
    """
    n, d = counts.pairs, counts.difference
    if d is None:
        return None
    z = float(stats.norm.ppf((1 + confidence) / 2))
    b, c = counts.only_speculative, counts.only_baseline

    def below(at: float) -> float:
        return _score(b, c, n, at) - z

    def above(at: float) -> float:
        return _score(b, c, n, at) + z

    edge = 1 - 1e-12
    low = -1.0 if d <= -edge else float(optimize.brentq(below, -edge, d))
    high = 1.0 if d >= edge else float(optimize.brentq(above, d, edge))
    return low, high


def pairs_for_equivalence(margin: float, level: float = 0.05) -> int:
    """Fewest pairs with which equal shares could be shown, even if no pair differed.

    Formula: with b = c = 0 the score at the margin is √(n margin / (1 − margin)); it must exceed
        z(1 − level): n > z² (1 − margin) / margin. At 5 % and 5 %: 52.
    """
    z = float(stats.norm.ppf(1 - level))
    return math.floor(z * z * (1 - margin) / margin) + 1


def _score(b: int, c: int, n: int, d: float) -> float:
    """Tango's statistic for the hypothesis that the difference is d."""
    linear = -b - c + (2 * n - b + c) * d
    root = math.sqrt(max(0.0, linear * linear + 8 * n * c * d * (1 - d)))
    q = max(0.0, (root - linear) / (4 * n))
    variance = n * (2 * q + d * (1 - d))
    distance = b - c - n * d
    if variance <= 0:
        return math.copysign(math.inf, distance) if abs(distance) > 1e-9 else 0.0
    return distance / math.sqrt(variance)


def _comparison(
    narrow: tuple[float, float] | None,
    interval: tuple[float, float] | None,
    p_value: float,
    margin: float,
    level: float,
) -> Comparison:
    if narrow is None or interval is None:
        return Comparison.CANNOT_TELL
    if -margin < narrow[0] and narrow[1] < margin:
        return Comparison.NO_PRACTICAL_DIFFERENCE
    if p_value <= level and interval[0] > 0:
        return Comparison.HIGHER
    if p_value <= level and interval[1] < 0:
        return Comparison.LOWER
    return Comparison.CANNOT_TELL
