"""One statement about the live traffic that is tested all the time."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from orchestrator.switch.guard.detector import (
    NOTHING,
    Detector,
    LogFactors,
    added,
    log_mean_exp,
    of_counts,
    of_value,
)

RECENT_ROUNDS = 12
"""What an alarm quotes as seen: of the last minute, at the default round."""


@dataclass(frozen=True, slots=True)
class Worth:
    """How many separate observations a round is worth: count / resembling, at most `most`.

    Neighbouring requests resemble each other (one user, one topic); latencies of a round share its
    hiccups, so a bad round is one bad event and not hundreds.
    """

    resembling: float
    most: float

    def of(self, count: int) -> float:
        return min(count / self.resembling, self.most)


ACCEPTANCE_WORTH = Worth(resembling=1.5, most=20.0)
QUALITY_WORTH = Worth(resembling=1.5, most=20.0)
ERROR_WORTH = Worth(resembling=1.0, most=6.0)
SLO_WORTH = Worth(resembling=1.0, most=1.5)
PAIR_WORTH = Worth(resembling=1.0, most=2.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """Share seen, in `count` observations, where `allowed` is borne; of the last rounds."""

    share: float
    allowed: float
    count: int


class Check:
    """`ways` e-detectors of one statement "a share is at most `allowed`", and what they saw.

    Between rounds it is given observations; `close` ends the round. `weight` is the part of all
    false alarms that it may make.
    """

    def __init__(
        self,
        rule: str,
        *,
        weight: float,
        worth: Worth,
        category: str | None = None,
        restarting: bool = True,
        ways: int = 1,
    ) -> None:
        self.rule = rule
        self.category = category
        self.weight = weight
        self.observations = 0
        """Since it began."""
        self.log_evidence = 0.0
        """ln of the mean evidence of all ways, after the last round."""
        self._worth = worth
        self._detectors = [Detector(restarting=restarting) for _ in range(ways)]
        self._recent: deque[tuple[float, float, int]] = deque(maxlen=RECENT_ROUNDS)
        self._counts: dict[tuple[int, float], tuple[int, int]] = {}
        """Of the running round: (way, allowed) -> (hits, events)."""
        self._values: LogFactors = NOTHING
        self._valued = (0.0, 0.0, 0)

    def count(self, hits: int, of: int, allowed: float, *, way: int = 0) -> None:
        """`hits` of `of` events in this round."""
        before, events = self._counts.get((way, allowed), (0, 0))
        self._counts[way, allowed] = before + hits, events + of

    def value(self, x: float, allowed: float) -> None:
        """One observation in [0, 1] in this round."""
        self._values = added(self._values, of_value(x, allowed))
        hits, borne, count = self._valued
        self._valued = hits + x, borne + allowed, count + 1

    def close(self, at_s: float) -> None:
        """Ends the round at `at_s`; one without observations leaves everything as it is."""
        hits, borne, events = self._valued
        factors = [self._values] * len(self._detectors)
        for (way, allowed), (some, of) in self._counts.items():
            factors[way] = added(factors[way], of_counts(some, of, allowed))
            hits, borne, events = hits + some, borne + of * allowed, events + of
        if not events:
            return
        count = events // len(self._detectors)
        for detector, factor in zip(self._detectors, factors, strict=True):
            detector.update(at_s, factor, count, worth=self._worth.of(count))
        self._recent.append((hits, borne, events))
        self.observations += count
        self.log_evidence = log_mean_exp([d.log_evidence for d in self._detectors])
        self._counts, self._values, self._valued = {}, NOTHING, (0.0, 0.0, 0)

    @property
    def began_s(self) -> float | None:
        return max(self._detectors, key=lambda d: d.log_evidence).began_s

    @property
    def seen(self) -> Seen | None:
        """None before anything was observed."""
        of = sum(count for _, _, count in self._recent)
        if not of:
            return None
        return Seen(
            share=sum(hits for hits, _, _ in self._recent) / of,
            allowed=sum(borne for _, borne, _ in self._recent) / of,
            count=of // len(self._detectors),
        )

    def alarms(self, level: float) -> bool:
        """Whether the evidence has crossed its part of `level`.

        Formula: evidence >= level / weight. With weights that sum to at most 1, all checks of a
        guard together alarm at most as often as one alone at `level`.
        """
        return self.log_evidence >= math.log(level / self.weight)

    def suspects(self, evidence: float) -> bool:
        return self.log_evidence >= math.log(evidence)

    def nearness(self, level: float) -> float:
        """Evidence on the way to an alarm: 0 = none, 1 = alarm. Formula: ln evidence / ln level."""
        return max(0.0, self.log_evidence / math.log(level / self.weight))
