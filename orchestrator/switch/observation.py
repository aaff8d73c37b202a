"""What the switch saw of one request, or of an arm's counters, as the guard gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArmName = Literal["baseline", "speculative"]


@dataclass(frozen=True, slots=True)
class Observation:
    """One request's end, or one reading of an arm's counters. None = not known, never zero.

    Times in seconds. A reading of counters (differences since the reading before) has only `at_s`,
    `arm` and the three draft figures; where the engine says them per request, they come with it.
    """

    at_s: float
    """When it ended, in unix time."""
    arm: ArmName
    tenant: str | None = None
    category: str | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    output_tokens: int | None = None
    error: str | None = None
    """Why the arm gave no whole answer: `refused`, `reset`, `timeout`, `http_500`, ….
    A client's own fault (4xx, a disconnect) is none of the arm's and is not an error here."""
    drafts: int | None = None
    accepted_tokens: int | None = None
    draft_tokens: int | None = None
    shadow_equal: bool | None = None
    """Of a mirrored request: whether both arms gave the same text. Compared only where the request
    asks for greedy decoding; else None."""
    repetition: float | None = None
    """Share of the answer's word 4-grams that occurred before in it, 0 to 1."""
    mirrored: bool = False
    """Its answer was thrown away: no caller waited for it."""

    @property
    def is_request(self) -> bool:
        """False for a reading of counters."""
        return any(x is not None for x in (self.ttft_s, self.e2e_s, self.error))
