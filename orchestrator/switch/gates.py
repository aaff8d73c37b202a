"""What closes the way to the speculative arm beside the guard: load, and an arm that is down."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.switch.policy import LoadLimit

LONGEST_RETURN_S = 3600.0
CALM_S = 3600.0
"""An arm that stayed up this long is trusted as on its first day."""


def load_is_off(was_off: bool, limit: LoadLimit | None, load: float | None) -> bool:
    """Hysteresis: off above `off_above`, on again below `on_below`, else as it was.

    An unknown load (None) changes nothing.
    """
    if limit is None:
        return False
    if load is None:
        return was_off
    if was_off:
        return load >= limit.on_below
    return load > limit.off_above


@dataclass(frozen=True, slots=True)
class ArmGate:
    """Keeps callers away from the speculative arm while it is down, and for a while after.

    Each fall within an hour of being up doubles the wait, up to an hour: an arm that dies again
    and again is not tried again and again.
    """

    down: bool = False
    falls: int = 0
    since_s: float | None = None
    """When it went down, or came back."""

    def wait_s(self, return_after_s: float) -> float:
        return min(LONGEST_RETURN_S, return_after_s * 2.0 ** max(0, self.falls - 1))

    def closed(self, now_s: float, return_after_s: float) -> bool:
        if self.down:
            return True
        if self.falls == 0 or self.since_s is None:
            return False
        return now_s - self.since_s < self.wait_s(return_after_s)

    def seen(self, up: bool, now_s: float) -> ArmGate:
        if not up:
            if self.down:
                return self
            calm = self.since_s is not None and now_s - self.since_s > CALM_S
            return ArmGate(down=True, falls=1 if calm else self.falls + 1, since_s=now_s)
        if self.down:
            return replace(self, down=False, since_s=now_s)
        return self
