"""When traffic leaves the speculative arm, and when it may come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, get_args

from orchestrator.switch.guard.settings import CoolDown
from orchestrator.switch.guarding import Breach, GuardState


class Fallback:
    """healthy -> breached -> cooling -> probing -> healthy, or back to cooling.

    A breach counts at once. Each further breach or failed probe makes the cool-down longer by
    `factor`, up to `max_s`; each `calm_s` in health takes one step back. So in any stretch of T
    seconds there are at most T / first_s returns, and while a fault lasts hardly more than
    log(T / first_s) / log(factor).
    """

    def __init__(self, settings: CoolDown) -> None:
        self._settings = settings
        self.state: GuardState = "healthy"
        self.since_s: float | None = None
        self.reasons: tuple[Breach, ...] = ()
        self.steps = 0
        """How often the cool-down has grown."""
        self._wait_from_s = 0.0
        self._wait_s = 0.0
        self._calm_from_s: float | None = None

    @property
    def cool_down_s(self) -> float:
        """What the next breach costs. Formula: min(first_s * factor^steps, max_s)."""
        longest = self._settings.max_s
        try:
            return min(self._settings.first_s * self._settings.factor**self.steps, longest)
        except OverflowError:
            return longest

    @property
    def probe_at_s(self) -> float | None:
        """When the cool-down ends; None unless one runs."""
        if self.state in ("breached", "cooling"):
            return self._wait_from_s + self._wait_s
        return None

    def tick(self, now_s: float) -> None:
        """Lets time pass."""
        if self.since_s is None:
            self._enter("healthy", now_s)
        if self.state == "healthy":
            if self._calm_from_s is None:
                self._calm_from_s = now_s
            while self.steps and now_s - self._calm_from_s >= self._settings.calm_s:
                self.steps -= 1
                self._calm_from_s += self._settings.calm_s
        if self.state == "breached" and now_s >= self._wait_from_s + self._settings.hold_s:
            self._enter("cooling", self._wait_from_s + self._settings.hold_s)
        if self.state == "cooling" and now_s >= self._wait_from_s + self._wait_s:
            self._enter("probing", now_s)

    def breach(self, now_s: float, reasons: Sequence[Breach]) -> None:
        """A limit is broken: the baseline, at once."""
        self.reasons = tuple(reasons)
        self._wait(now_s, self.cool_down_s)
        self.steps += 1
        self._enter("breached", now_s)

    def pass_probe(self, now_s: float) -> None:
        self.reasons = ()
        self._enter("healthy", now_s)

    def fail_probe(self, now_s: float, reasons: Sequence[Breach]) -> None:
        """The fault is still there: a longer cool-down. Without `reasons` the old ones stand."""
        self.reasons = tuple(reasons) or self.reasons
        self._wait(now_s, self.cool_down_s)
        self.steps += 1
        self._enter("cooling", now_s)

    def put_off_probe(self, now_s: float) -> None:
        """Too little was seen to tell: the same wait once more."""
        self._wait(now_s, self._wait_s)
        self._enter("cooling", now_s)

    def _wait(self, now_s: float, wait_s: float) -> None:
        self._wait_from_s, self._wait_s = now_s, wait_s

    def _enter(self, state: GuardState, now_s: float) -> None:
        self.state, self.since_s = state, now_s
        self._calm_from_s = now_s if state == "healthy" else None

    def snapshot(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "since_s": self.since_s,
            "steps": self.steps,
            "wait_from_s": self._wait_from_s,
            "wait_s": self._wait_s,
            "calm_from_s": self._calm_from_s,
            "reasons": [asdict(reason) for reason in self.reasons],
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Raises: KeyError, TypeError or ValueError when it is not a snapshot of this form."""
        if kept["state"] not in get_args(GuardState):
            raise ValueError(f"state: must be one of {get_args(GuardState)}, got {kept['state']!r}")
        reasons = tuple(Breach(**reason) for reason in kept["reasons"])
        steps, wait_from_s, wait_s = (
            int(kept["steps"]),
            float(kept["wait_from_s"]),
            float(kept["wait_s"]),
        )
        self.state, self.since_s, self.reasons = kept["state"], kept["since_s"], reasons
        self.steps, self._wait_from_s, self._wait_s = steps, wait_from_s, wait_s
        self._calm_from_s = kept["calm_from_s"]
