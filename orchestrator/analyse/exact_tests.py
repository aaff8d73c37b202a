"""Exact tests and intervals for counts."""

from __future__ import annotations

from typing import Literal

from scipy import stats

Alternative = Literal["two-sided", "greater", "less"]


def mcnemar(only_first: int, only_second: int, alternative: Alternative = "two-sided") -> float:
    """Exact McNemar test: of the pairs that differ, do as many favour the one as the other?

    Formula: only_first ~ Binomial(only_first + only_second, 1/2) under the null hypothesis;
        "greater" asks whether the first has it more often. 1 when no pair differs.
    Source: McNemar 1947, Psychometrika 12; the exact form is the sign test.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"counts must be >= 0, got {only_first} and {only_second}")
    if only_first + only_second == 0:
        return 1.0
    return float(
        stats.binomtest(only_first, only_first + only_second, 0.5, alternative=alternative).pvalue
    )


def fisher(
    hits: int, of: int, other_hits: int, other_of: int, alternative: Alternative = "two-sided"
) -> float:
    """Fisher's exact test of two independent proportions; "greater": hits/of is the larger one.

    Raises: ValueError unless 0 <= hits <= of on both sides.
    Source: Fisher 1935, The Design of Experiments.
    """
    if not (0 <= hits <= of and 0 <= other_hits <= other_of):
        raise ValueError(
            f"`0 <= hits <= of` must hold, but got {hits} of {of} and {other_hits} of {other_of}"
        )
    table = [[hits, of - hits], [other_hits, other_of - other_hits]]
    return float(stats.fisher_exact(table, alternative=alternative).pvalue)


def proportion_interval(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a proportion: never covers less than it says.

    With no hits its upper end is about 3.7/of at 95 % (two-sided).
    Raises: ValueError unless 0 <= hits <= of and of >= 1.
    Source: Clopper & Pearson 1934, Biometrika 26.
    """
    if of < 1 or not 0 <= hits <= of:
        raise ValueError(f"`0 <= hits <= of` and `of >= 1` must hold, but got {hits} of {of}")
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(stats.beta.ppf(tail, hits, of - hits + 1))
    high = 1.0 if hits == of else float(stats.beta.ppf(1 - tail, hits + 1, of - hits))
    return low, high
