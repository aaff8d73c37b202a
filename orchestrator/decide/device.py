"""What an environment snapshot and the engines say of themselves, in short names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.decide.trial_result import TrialResult


def device_name(environment: Mapping[str, Any]) -> str | None:
    """The accelerators, or the processor where there is none; None where neither is known."""
    accelerators = environment.get("accelerators") or []
    if accelerators:
        models = Counter(str(device.get("model") or device.get("name")) for device in accelerators)
        return ", ".join(f"{count} x {name}" for name, count in models.items())
    processor = environment.get("processor") or {}
    cores = processor.get("usable_cores") or processor.get("cores")
    model = processor.get("model")
    if model is None:
        return None
    return f"{model}, {cores} cores" if cores else str(model)


def engine_names(trials: Iterable[TrialResult]) -> tuple[str, ...]:
    """`vllm 0.32.0` of every engine that the trials used, each once; sorted."""
    return tuple(
        sorted(
            {
                f"{facts.engine} {facts.engine_version}" if facts.engine_version else facts.engine
                for trial in trials
                for facts in trial.engines.values()
            }
        )
    )
