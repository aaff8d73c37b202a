"""The figures that are shown: both arms, over a sliding window, with 95 % intervals.

For the eye and for metrics. Alarms do not rest on them but on the evidence of the checks, which may
be looked at all the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import NormalDist

from orchestrator.analyse.exact_tests import proportion_interval
from orchestrator.switch.guarding import Figure
from orchestrator.switch.observation import ArmName, Observation

REQUESTS_MAX = 2000
"""Remembered of each arm: at more traffic the window is shorter than `window_s`."""
QUANTILES_SHOWN = (0.5, 0.95)
LATENCIES = ("ttft_s", "tpot_s", "e2e_s")
ARMS: tuple[ArmName, ...] = ("baseline", "speculative")
Z = NormalDist().inv_cdf(0.975)


class Window:
    """Remembers the last requests and works their figures out when asked."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._seen: dict[ArmName, deque[Observation]] = {
            arm: deque(maxlen=REQUESTS_MAX) for arm in ARMS
        }

    def add(self, seen: Observation) -> None:
        self._seen[seen.arm].append(seen)

    def figures(self, now_s: float, limits: Callable[[str], float | None]) -> tuple[Figure, ...]:
        """Every figure that is defined. `limits`: by the figure's name, for the speculative arm."""
        for kept in self._seen.values():
            while kept and kept[0].at_s < now_s - self._window_s:
                kept.popleft()
        return tuple(self._figures(limits))

    def _figures(self, limits: Callable[[str], float | None]) -> Iterator[Figure]:
        for arm in ARMS:
            seen = [one for one in self._seen[arm] if one.is_request]
            limit = limits if arm == "speculative" else _none
            yield from _latencies(arm, seen, limit)
            if seen:
                failed = sum(one.error is not None for one in seen)
                yield _share("error_rate", arm, failed, len(seen), limit)
            answers = [one.repetition for one in seen if one.repetition is not None]
            above = limits("repetition")
            if answers and above is not None:
                hits = sum(value > above for value in answers)
                yield _share("repetitive_rate", arm, hits, len(answers), limit)
        yield from self._acceptance(limits)
        compared = [
            one.shadow_equal
            for seen in self._seen.values()
            for one in seen
            if one.shadow_equal is not None
        ]
        if compared:
            yield _share("mismatch_rate", None, compared.count(False), len(compared), limits)

    def _acceptance(self, limits: Callable[[str], float | None]) -> Iterator[Figure]:
        by_category: dict[str | None, list[tuple[int, int]]] = {}
        for one in self._seen["speculative"]:
            if one.draft_tokens and one.accepted_tokens is not None:
                by_category.setdefault(None, []).append((one.accepted_tokens, one.draft_tokens))
                if one.category:
                    counts = by_category.setdefault(one.category, [])
                    counts.append((one.accepted_tokens, one.draft_tokens))
        for category, counts in sorted(by_category.items(), key=lambda item: item[0] or ""):
            value, low, high = ratio_interval(counts)
            name = "acceptance_rate"
            limit = limits(name if category is None else f"{name}/{category}")
            yield Figure(name, "speculative", category, value, low, high, limit, len(counts))


def _none(_: str) -> None:
    return None


def _latencies(
    arm: ArmName, seen: Sequence[Observation], limits: Callable[[str], float | None]
) -> Iterator[Figure]:
    for field in LATENCIES:
        values = sorted(v for one in seen if (v := getattr(one, field)) is not None)
        for level in QUANTILES_SHOWN:
            name = f"{field.removesuffix('_s')}_p{level * 100:.0f}_s"
            if values:
                value, low, high = quantile_interval(values, level)
                yield Figure(name, arm, None, value, low, high, limits(name), len(values))


def _share(
    name: str,
    arm: ArmName | None,
    hits: int,
    of: int,
    limits: Callable[[str], float | None],
) -> Figure:
    low, high = proportion_interval(hits, of)
    return Figure(name, arm, None, hits / of, low, high, limits(name), of)


def quantile_interval(
    ordered: Sequence[float], level: float
) -> tuple[float, float | None, float | None]:
    """A quantile and the order statistics about it, at 95 %; `ordered` ascending, not empty.

    Formula: ranks n q -+ 1.96 sqrt(n q (1 - q)), rounded outwards.
    Undefined: an end is None where the rank lies outside the sample.
    Source: Hahn & Meeker 1991, Statistical Intervals, section 5.2 (normal approximation).
    """
    n = len(ordered)
    half = Z * math.sqrt(n * level * (1 - level))
    below, above = math.floor(n * level - half), math.ceil(n * level + half)
    value = ordered[min(int(n * level), n - 1)]
    return (
        value,
        ordered[below - 1] if below >= 1 else None,
        ordered[above] if above < n else None,
    )


def ratio_interval(
    counts: Iterable[tuple[int, int]],
) -> tuple[float, float | None, float | None]:
    """Sum of the first over sum of the second, with 95 %: requests vary, not tokens.

    Formula: R = sum a / sum p; se^2 = n / (n - 1) sum (a - R p)^2 / (sum p)^2; R -+ 1.96 se,
        cut at 0 and 1
    Undefined: no ends for fewer than 2 requests.
    Source: Cochran 1977, Sampling Techniques, section 6.5 (ratio estimate).
    """
    pairs = list(counts)
    n, total = len(pairs), sum(p for _, p in pairs)
    ratio = sum(a for a, _ in pairs) / total
    if n < 2:
        return ratio, None, None
    squares = sum((a - ratio * p) ** 2 for a, p in pairs)
    half = Z * math.sqrt(n / (n - 1) * squares) / total
    return ratio, max(0.0, ratio - half), min(1.0, ratio + half)
