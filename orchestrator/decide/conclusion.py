"""One thing that may be said of a sweep, with all that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from orchestrator.decide.message import Message, Value


class Kind(StrEnum):
    """What a conclusion is about, in the order in which they are read."""

    OVERALL = "overall"
    EFFECT = "effect"
    SWITCH_OFF = "switch_off"
    CHOICE = "choice"
    ACCEPTANCE = "acceptance"
    QUALITY = "quality"
    STABILITY = "stability"
    RESOURCES = "resources"
    BOTTLENECK = "bottleneck"
    RISK = "risk"


Tone = Literal["for", "against", "neutral", "warning", "unknown"]
"""Whether it speaks for speculation or against it, warns, or says that something is not known."""

ControlState = Literal["held", "wide", "failed", "not_measured"]
"""The A/A control: its interval meets the margin and reaches no further than it; it reaches
further; it lies wholly outside; there is none (or too few pairs)."""


@dataclass(frozen=True)
class Conditions:
    """What was held or varied while it was measured; nothing is claimed outside."""

    target: str | None
    drafts: tuple[str, ...]
    """Labels of the speculative deployments: `eagle(head) K=3`."""
    device: str | None
    engines: tuple[str, ...]
    """`vllm 0.32.0`; more than one where versions differ."""
    workloads: tuple[str, ...]
    input_tokens: tuple[float, float] | None
    """Smallest and largest median input length of the workloads, in tokens."""
    output_tokens: tuple[int, ...]
    load_mode: Literal["closed", "open"] | None
    """None where both occur."""
    load_range: tuple[float, float] | None
    """Requests in flight (closed) or requests/s (open)."""
    temperatures: tuple[float, ...]
    sampling: tuple[str, ...]
    """Further sampling fields that were sent: `top_p=0.9`."""
    simulated: bool = False


@dataclass(frozen=True)
class Confidence:
    """How sure it is. The interval is that of the weakest cell that carries the statement."""

    level: float
    metric: str
    speedup: float | None
    low: float | None
    high: float | None
    pairs: int
    """Valid pairs of all cells that carry it."""
    control: ControlState
    confirmed: bool | None = None
    """Whether the same was found again on fresh prompts; None where it was not tried."""


@dataclass(frozen=True)
class Conclusion:
    """What holds, under which conditions, how surely, and what it rests on."""

    kind: Kind
    key: str
    """Of the message; `values` belong into its sentence."""
    tone: Tone
    conditions: Conditions
    values: Mapping[str, Value] = field(default_factory=dict)
    confidence: Confidence | None = None
    """None where it is a fact (a failure, a gap), not an estimate."""
    evidence: tuple[str, ...] = ()
    """Trial ids: the records it can be traced to."""
    not_measured: tuple[Message, ...] = ()
    """What a reader might take it to say, and it does not."""

    @property
    def message(self) -> Message:
        return Message(self.key, self.values)
