"""Sentences that stand under every table, so that no figure is read without its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from orchestrator.decide.device import device_name
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.plan.trial import Protocol


def control_sentence(result: SweepResult) -> str:
    """What the A/A control says of this machine."""
    control = result.control()
    if control is None or control.interval is None:
        return (
            "A/A control: not measured, so nothing says how far this machine's own noise goes; "
            "read every verdict with that in mind."
        )
    interval = control.interval
    span = f"{interval.speedup:.3f}x [{interval.low:.3f}, {interval.high:.3f}]"
    attached = result.manifest["experiment"].get("attach") is not None
    how = "asked again but not relaunched" if attached else "relaunched"
    if control.trustworthy:
        return f"A/A control: a baseline against itself, {how}, gives {span}."
    return (
        f"A/A control FAILED: a baseline against itself, {how}, gives {span}, outside "
        "the margin. Something other than speculation differs between the arms: do not use these "
        "verdicts before it is found."
    )


def preconditions(result: SweepResult) -> str:
    """Target, engine, device and protocol in one sentence."""
    experiment = result.manifest["experiment"]
    environment = result.manifest.get("environment") or {}
    parts = [
        f"target {experiment.get('target') or 'attached server'}",
        engine_text(result),
        device_text(environment),
    ]
    for trial in result.every:
        protocol = trial.trial.protocol
        parts.append(
            f"{protocol.confidence:.0%} intervals, {looks_text(protocol)}, corrected over "
            f"{len(result.trials)} cells; margin {protocol.margin:.0%}"
        )
        break
    return "Measured with: " + "; ".join(part for part in parts if part) + "."


def looks_text(protocol: Protocol) -> str:
    """When a verdict could be reached: that is what the intervals pay for."""
    return "valid at every look" if protocol.looks == "every" else "one look, at the end"


def engine_text(result: SweepResult) -> str:
    """`vllm 0.32.0`, from what the engines said; several versions are all named."""
    found = Counter(
        f"{facts.engine} {facts.engine_version or '(version not available)'}"
        for trial in result.every
        for facts in trial.engines.values()
    )
    return ", ".join(sorted(found)) or "engine not available"


def device_text(environment: Mapping[str, Any]) -> str:
    """The accelerators, or the processor where there is none."""
    return device_name(environment) or "processor not available"
