"""How the baseline fares at the same time: what it suffers too is not speculation's fault."""

from __future__ import annotations

from orchestrator.switch.guard.recent import RecentShare

ROUNDS = 6
"""Short, so that an hour's calm does not hide a burst that hits both arms now."""
SLACK = 1.5
BORNE_MAX = 0.9


class BaselineShares:
    """Shares of baseline requests that were late, failed or repetitive in the last rounds."""

    def __init__(self) -> None:
        self._shares: dict[str, RecentShare] = {}

    def add(self, rule: str, hit: bool) -> None:
        if rule not in self._shares:
            self._shares[rule] = RecentShare(ROUNDS)
        self._shares[rule].add(hit)

    def close(self) -> None:
        for share in self._shares.values():
            share.close()

    def borne(self, rule: str, limit: float) -> float:
        """What the speculative arm may show of `rule` now.

        Formula: max(limit, min(1.5 * hits / (n + 2), 0.9)) of the baseline's last rounds; the 2
        keeps a few requests from excusing anything. Without baseline traffic it is the limit.
        """
        share = self._shares.get(rule)
        if share is None:
            return limit
        return max(limit, min(SLACK * share.hits / (share.of + 2), BORNE_MAX))
