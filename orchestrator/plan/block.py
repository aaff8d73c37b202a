"""What is sent in one block: the same for both arms of a pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestrator.plan.trial import LoadPoint, Sampling


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One conversation of a prompt set. `turns` are the user's messages, in order."""

    id: str
    category: str
    turns: tuple[str, ...]
    system: str | None = None
    reference: tuple[str, ...] | None = None
    """Recorded answers to the turns, for workloads that replay a fixed history."""
    tokens: int | None = None
    """Length of the first turn in the target's tokens; None = not counted."""


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One conversation to be sent: `offset_s` after the block's start, or when a slot is free."""

    request_id: str
    prompt: Prompt
    offset_s: float | None
    max_tokens: int
    seed: int | None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits per phase of a request, in seconds."""

    connect_s: float = 10.0
    first_token_s: float = 120.0
    stall_s: float = 60.0
    total_s: float = 600.0


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """One block, ready to send. Both arms of a pair get the same object."""

    requests: tuple[PlannedRequest, ...]
    load: LoadPoint
    sampling: Sampling
    endpoint: Literal["chat", "completion"]
    fixed_length: bool
    history: Literal["own", "reference", "first_turn"]
    timeouts: Timeouts = Timeouts()
