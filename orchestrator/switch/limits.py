"""What a tenant may still ask for. Pure: the time is handed in.

Source: token bucket, ITU-T I.371; a minute's worth may be used at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WINDOW_S = 60.0


@dataclass
class Bucket:
    """`per_minute` flow in steadily, at most a minute's worth is kept; None = no limit."""

    per_minute: float | None
    _left: float = field(default=0.0, init=False)
    _at_s: float | None = field(default=None, init=False)

    def left(self, now_s: float) -> float:
        if self.per_minute is None:
            return float("inf")
        if self._at_s is None:
            self._left = self.per_minute
        else:
            flown = max(0.0, now_s - self._at_s) * self.per_minute / WINDOW_S
            self._left = min(self.per_minute, self._left + flown)
        self._at_s = now_s
        return self._left

    def take(self, amount: float, now_s: float) -> None:
        """May leave it below zero: what was used beyond the estimate is owed."""
        if self.per_minute is not None:
            self.left(now_s)
            self._left -= amount

    def wait_s(self, amount: float, now_s: float) -> float:
        """Until `amount` is there, 0 when it is; more than a minute's worth waits for that."""
        missing = min(amount, self.per_minute or 0.0) - self.left(now_s)
        if self.per_minute is None or missing <= 0:
            return 0.0
        return missing * WINDOW_S / self.per_minute


@dataclass(frozen=True, slots=True)
class Refusal:
    """`limit` is `requests`, `tokens` or `concurrency`."""

    limit: str
    retry_after_s: float
    text: str


class Allowance:
    """One tenant's limits in one replica."""

    def __init__(
        self,
        *,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        concurrency: int | None,
    ) -> None:
        self._requests, self._tokens = Bucket(requests_per_minute), Bucket(tokens_per_minute)
        self._concurrency = concurrency
        self.in_flight = 0

    def begin(self, tokens: float, now_s: float) -> Refusal | None:
        """Charges a request and `tokens`, its estimate; None: it may go, and `end` must follow."""
        if self._concurrency is not None and self.in_flight >= self._concurrency:
            return Refusal("concurrency", 1.0, f"{self._concurrency} requests are running")
        for bucket, amount, name in (
            (self._requests, 1.0, "requests"),
            (self._tokens, tokens, "tokens"),
        ):
            wait_s = bucket.wait_s(amount, now_s)
            if wait_s > 0:
                text = f"{bucket.per_minute:g} {name} a minute are used up"
                return Refusal(name, wait_s, text)
        self._requests.take(1.0, now_s)
        self._tokens.take(tokens, now_s)
        self.in_flight += 1
        return None

    def end(self, estimated: float, used: float | None, now_s: float) -> None:
        """`used` None: not known; the estimate stands."""
        self.in_flight -= 1
        if used is not None:
            self._tokens.take(used - estimated, now_s)
