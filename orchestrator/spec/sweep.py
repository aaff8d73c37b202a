"""The axes of the grid."""

from __future__ import annotations

from pydantic import Field

from orchestrator.spec.section import Axis, Count, NotNegative, Section
from orchestrator.spec.speculation import Speculation


class Sweep(Section):
    """Which cells are measured: speculation x batch size x temperature (x workload x load)."""

    speculation: tuple[Speculation, ...] = Field(min_length=1)
    batch_size: Axis[Count] | None = Field(
        default=None,
        description="requests in flight; the engine's cap is the largest of them",
    )
    temperature: Axis[NotNegative] = (0.0,)
