"""Where a trial's time went: waiting, engine starts, warm-up, measured blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from orchestrator.plan.trial import Trial
from orchestrator.records import BlockRecord, FailureClass, Outcome

Pair = tuple[BlockRecord, BlockRecord]
"""(baseline block, speculative block)"""


class TrialSeconds:
    """Where a trial's time went."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self._began = self._at = monotonic()
        self._waiting_s: float | None = None
        self._starting_s: float | None = None
        self._warmup_s: float | None = None
        self._measured_s = 0.0

    def asked(self) -> None:
        self._at = self._now()

    def leased(self, starting_s: float) -> None:
        """`starting_s` of the time since it was asked for went into engine starts."""
        now = self._now()
        self._waiting_s = (self._waiting_s or 0.0) + now - self._at
        self._starting_s = (self._starting_s or 0.0) + starting_s
        self._at = now

    def warmed_up(self) -> None:
        self._warmup_s = (self._warmup_s or 0.0) + self._now() - self._at

    def turned(self, took_s: float) -> None:
        """An arm was started and warmed up again for its turn."""
        self._warmup_s = (self._warmup_s or 0.0) + took_s

    def measured(self, pair: Pair) -> None:
        self._measured_s += sum(block.duration_s for block in pair)

    def outcome(
        self,
        trial: Trial,
        status: Literal["finished", "failed", "stopped"],
        pairs: Sequence[Pair],
        valid: int,
        *,
        failure: FailureClass | None = None,
        cause: str | None = None,
        log: str | None = None,
    ) -> Outcome:
        return Outcome(
            trial_id=trial.id,
            status=status,
            failure=failure,
            cause=cause,
            log_tail=log or None,
            pairs_measured=len(pairs),
            pairs_valid=valid,
            wall_s=self._now() - self._began,
            waiting_s=self._waiting_s,
            starting_s=self._starting_s,
            warmup_s=self._warmup_s,
            measured_s=self._measured_s if pairs else None,
        )
