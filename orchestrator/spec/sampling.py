"""Sampling fields sent with every request; what is not given is the server's default."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from orchestrator.spec.section import Count, Flag, Section, Share


class RequestSampling(Section):
    top_p: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    top_k: Count | None = None
    min_p: Share | None = None
    seeded: Flag = Field(
        default=True, description="send a seed with every request, the same one to both arms"
    )
