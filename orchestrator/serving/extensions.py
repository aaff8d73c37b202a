"""What is mixed into vLLM's worker when it needs more than one of ours: it takes one class."""

from __future__ import annotations

from orchestrator.serving.stage_timer import StageTimerExtension
from orchestrator.serving.what_if import WhatIfExtension


class TimedWhatIfExtension(StageTimerExtension, WhatIfExtension):
    """Stages are timed, and the draft is supposed."""
