"""The second pass as a record holds it: how clear the target's choice was where answers part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.analyse.divergence import NEAR_TIE_NATS, Margin
from orchestrator.run.suites.record import SuiteRecord


def near_tie_nats(record: SuiteRecord) -> float:
    """By the dtype of the baseline; bfloat16 where it was left to the engine."""
    dtype = str(record.baseline.get("engine", {}).get("dtype", "bfloat16"))
    return NEAR_TIE_NATS.get(dtype, NEAR_TIE_NATS["bfloat16"])


def recorded_margins(record: SuiteRecord, name: str, near: float) -> dict[str, Margin]:
    """By prompt; one that only bounds a token that may be near the top is left out."""
    read: Mapping[str, Mapping[str, Any]] = record.extra.get("margins", {}).get(name, {})
    found = {}
    for prompt, values in read.items():
        margin = Margin(values["baseline_logprob"], values["other_logprob"], values["top_logprob"])
        # An upper bound convicts when it is far below the top, and says nothing when it is near.
        bound = values["other_at_most"] and margin.other_deficit <= near
        if not bound and not (values["baseline_at_most"] and margin.baseline_deficit <= near):
            found[prompt] = margin
    return found
