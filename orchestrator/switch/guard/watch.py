"""All checks of one stretch of traffic: everything while healthy, or what a probe mirrors."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from orchestrator.switch.guard.acceptance import (
    LINES,
    NO_CATEGORY,
    RequestWeight,
    UsualAcceptance,
    tell_drop,
    tell_floor,
)
from orchestrator.switch.guard.baseline import BaselineShares
from orchestrator.switch.guard.check import (
    ACCEPTANCE_WORTH,
    ERROR_WORTH,
    PAIR_WORTH,
    QUALITY_WORTH,
    SLO_WORTH,
    Check,
)
from orchestrator.switch.guard.limits import allowed_of, bounds_of, hits_of
from orchestrator.switch.guard.pairing import PairSeen, ratios
from orchestrator.switch.guard.settings import AcceptanceLimits, GuardSettings
from orchestrator.switch.observation import Observation

FLOOR, DROP = "acceptance_floor", "acceptance_drop"
SLOWER = {"ttft_s": "slower_ttft", "tpot_s": "slower_tpot", "e2e_s": "slower_e2e"}
WEIGHTS = {FLOOR: 0.2, DROP: 0.2, "errors": 0.1, "mismatch": 0.05, "repetition": 0.05}
"""Parts of the false alarms; they sum to 1 with the four below."""
SLO_WEIGHT, SLOWER_WEIGHT, CATEGORY_FLOOR_WEIGHT, CATEGORY_DROP_WEIGHT = 0.1, 0.1, 0.1, 0.1
CATEGORIES_MAX = 16
"""Categories with checks of their own; further ones count towards the whole only."""
RECENT_RATES = 64


class UsualByCategory:
    """What is usual, category by category; requests without one are a category of their own."""

    def __init__(self, limits: AcceptanceLimits) -> None:
        self._limits = limits
        self.known: dict[str, UsualAcceptance] = {}

    def of(self, category: str | None) -> UsualAcceptance | None:
        """None for categories beyond the most that are remembered."""
        name = category or NO_CATEGORY
        if name not in self.known:
            if len(self.known) > CATEGORIES_MAX:
                return None
            self.known[name] = UsualAcceptance(self._limits)
        return self.known[name]


class Watch:
    """Fed with the speculative arm's requests and with pairs; closes a round for all its checks."""

    def __init__(
        self, settings: GuardSettings, usual: UsualByCategory, *, restarting: bool = True
    ) -> None:
        self.requests = 0
        self.recent_rates: dict[str, deque[float]] = {}
        """Acceptance of the last requests, by category."""
        self._settings = settings
        self._usual = usual
        self._restarting = restarting
        self._bounds = {bound.rule: bound for bound in bounds_of(settings)}
        self._checks: dict[tuple[str, str | None], Check] = {}
        self._weight = RequestWeight()
        self._pending: dict[str, tuple[int, int]] = {}

    def observe(self, seen: Observation) -> None:
        """One of the speculative arm's requests or readings of counters."""
        if seen.drafts is not None or seen.draft_tokens is not None:
            self._acceptance(seen)
        for bound in self._bounds.values():
            hit = hits_of(bound, seen)
            if hit is not None:
                hits, of = self._pending.get(bound.rule, (0, 0))
                self._pending[bound.rule] = hits + hit, of + 1
        self.requests += seen.is_request

    def pair(self, pair: PairSeen) -> None:
        """Two requests of one moment."""
        margin = self._settings.slower_than_baseline
        if margin is None:
            return
        for name, ratio in ratios(pair):
            hits, of = self._pending.get(SLOWER[name], (0, 0))
            self._pending[SLOWER[name]] = hits + (ratio > margin), of + 1

    def close(self, at_s: float, baseline: BaselineShares, *, comparable: bool) -> None:
        """Ends the round. `comparable`: whether the arms' loads allow their latencies to be
        compared."""
        for rule, (hits, of) in self._pending.items():
            if rule in SLOWER.values():
                if comparable:
                    self._check(rule).count(hits, of, 0.5)
            else:
                self._check(rule).count(hits, of, allowed_of(self._bounds[rule], baseline))
        self._pending.clear()
        for check in self._checks.values():
            check.close(at_s)

    def alarms(self, level: float, *, category: str | None = None) -> list[Check]:
        """Checks whose evidence has crossed their part of `level`: of the whole, or of one
        category."""
        return [c for c in self.checks if c.category == category and c.alarms(level)]

    @property
    def checks(self) -> tuple[Check, ...]:
        """Those that have had anything to judge."""
        return tuple(self._checks.values())

    @property
    def categories(self) -> frozenset[str]:
        """Those with checks of their own."""
        return frozenset(c for _, c in self._checks if c is not None)

    def check(self, rule: str, category: str | None) -> Check | None:
        return self._checks.get((rule, category))

    def forget(self, category: str) -> None:
        """Begins a category's checks anew."""
        for key in [key for key in self._checks if key[1] == category]:
            del self._checks[key]

    def _acceptance(self, seen: Observation) -> None:
        if not seen.draft_tokens or seen.accepted_tokens is None:
            return
        rate = min(seen.accepted_tokens / seen.draft_tokens, 1.0)
        usual = self._usual.of(seen.category)
        scopes = list(self._scopes(seen.category))
        weight = self._weight.of(seen.draft_tokens)
        for category in scopes:
            floor = self._floor(category)
            if floor is not None and floor > 0:
                tell_floor(self._check(FLOOR, category), rate, floor, weight)
            if usual is not None and usual.lines:
                tell_drop(self._check(DROP, category), rate, usual.lines)
        if usual is not None:
            usual.learn(rate)
        name = seen.category or NO_CATEGORY
        if name in self.recent_rates or len(self.recent_rates) <= CATEGORIES_MAX:
            self.recent_rates.setdefault(name, deque(maxlen=RECENT_RATES)).append(rate)

    def _scopes(self, category: str | None) -> Iterator[str | None]:
        """The whole, and the category where it has checks of its own."""
        yield None
        if category and (
            (FLOOR, category) in self._checks
            or (DROP, category) in self._checks
            or len(self.categories) < CATEGORIES_MAX
        ):
            yield category

    def _floor(self, category: str | None) -> float | None:
        limits = self._settings.acceptance
        return limits.floor if category is None else limits.floors.get(category, limits.floor)

    def _check(self, rule: str, category: str | None = None) -> Check:
        check = self._checks.get((rule, category))
        if check is None:
            check = self._checks[rule, category] = self._new_check(rule, category)
        return check

    def _new_check(self, rule: str, category: str | None) -> Check:
        if category is not None:
            part = CATEGORY_FLOOR_WEIGHT if rule == FLOOR else CATEGORY_DROP_WEIGHT
            weight, worth = part / CATEGORIES_MAX, ACCEPTANCE_WORTH
        elif rule in (FLOOR, DROP):
            weight, worth = WEIGHTS[rule], ACCEPTANCE_WORTH
        elif rule in SLOWER.values():
            weight, worth = SLOWER_WEIGHT / len(SLOWER), PAIR_WORTH
        elif rule in WEIGHTS:
            weight = WEIGHTS[rule]
            worth = ERROR_WORTH if rule == "errors" else QUALITY_WORTH
        else:
            weight, worth = SLO_WEIGHT / len(self._settings.slo), SLO_WORTH
        return Check(
            rule,
            category=category,
            weight=weight,
            worth=worth,
            restarting=self._restarting,
            ways=len(LINES) if rule == DROP else 1,
        )
