"""Where the two arms run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.spec.section import NotNegative, Positive, Section, Text


class Placement(Section):
    """separate: each arm has devices of its own (of one kind); shared: both engines are loaded on
    the same devices and measured in turn; in_turn: one engine at a time has the devices, the other
    sleeps or is started again.
    """

    strategy: Literal["separate", "in_turn", "shared"] | None = Field(
        default=None, description="default: separate on GPUs, shared on a CPU"
    )
    gpus_per_replica: NotNegative | None = Field(
        default=None,
        description="default: tensor x pipeline parallel size where there are GPUs, otherwise 0",
    )
    cpus_per_replica: Positive | None = None
    accelerator: Text | None = Field(
        default=None, description="only on this kind of device, as Ray names it (H100, A100, ...)"
    )
