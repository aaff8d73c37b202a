"""Bursts and faults while they happen: what is noted around them, request by request."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.measure.latency import token_chunks, token_count
from orchestrator.records import ARMS, Arm, RequestRecord

BEFORE_S = 60.0
"""So long before an event is remembered."""
ROWS_MOST = 4000
"""Requests noted around one event, of one arm; of more, every second one is dropped, and again."""
AFTER_MIN_S = 60.0
AFTER_TIMES = 6.0
"""An event is watched six times as long as it lasted, and a minute at least."""

Row = list[Any]


@dataclass
class Recent:
    """The latest requests of both arms, in bounded memory."""

    rows: dict[Arm, deque[Row]] = field(
        default_factory=lambda: {arm: deque(maxlen=ROWS_MOST // 2) for arm in ARMS}
    )

    def add(self, arm: Arm, rows: Sequence[Row]) -> None:
        self.rows[arm].extend(rows)

    def since(self, at_s: float) -> dict[Arm, list[Row]]:
        return {arm: [row for row in rows if row[2] >= at_s] for arm, rows in self.rows.items()}


@dataclass
class Watched:
    """One event under observation. Seconds are the soak's."""

    kind: str
    label: str
    began_s: float
    ended_s: float
    until_s: float
    requests: dict[Arm, list[Row]]
    equal: dict[str, list[int]] = field(default_factory=dict)
    died: dict[Arm, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    skipped: str | None = None
    _kept: dict[Arm, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 1))
    _seen: dict[Arm, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))

    def add(self, arm: Arm, rows: Sequence[Row]) -> None:
        """Failed requests are never dropped."""
        kept = self.requests[arm]
        for row in rows:
            self._seen[arm] += 1
            if row[4] is not None or self._seen[arm] % self._kept[arm] == 0:
                kept.append(row)
        if len(kept) > ROWS_MOST:
            self._kept[arm] *= 2
            failed = [row for row in kept if row[4] is not None]
            whole = [row for row in kept if row[4] is None]
            self.requests[arm] = sorted(failed[:ROWS_MOST] + whole[::2])

    def as_plain(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "label": self.label,
            "began_s": self.began_s,
            "ended_s": self.ended_s,
            "until_s": self.until_s,
            "requests": dict(self.requests),
            "equal": dict(self.equal),
            "died": dict(self.died),
            "notes": list(self.notes),
            "skipped": self.skipped,
        }


def row_of(record: RequestRecord, offset_s: float) -> Row | None:
    """[sent, first token, end, tokens, error] on the soak's clock; None: it was never sent."""
    if record.sent_s is None or record.end_s is None:
        return None
    chunks = token_chunks(record)
    return [
        round(record.sent_s + offset_s, 4),
        round(chunks[0][0] + offset_s, 4) if chunks else None,
        round(record.end_s + offset_s, 4),
        token_count(record),
        None if record.error is None else record.error.value,
    ]


def watched_until(ended_s: float, lasts_s: float, next_s: float | None, duration_s: float) -> float:
    """How long an event that ends at `ended_s` is watched: up to the next one at most."""
    until = min(ended_s + max(AFTER_MIN_S, AFTER_TIMES * lasts_s), duration_s)
    return until if next_s is None else max(ended_s, min(until, next_s - 1))


def fault_label(fault: Mapping[str, Any]) -> str:
    return f"{fault['lasts']:g} s at {fault['at'] / 60:.3g} min"
