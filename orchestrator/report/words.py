"""Sentences that stand under every table, so that no figure is read without its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.decide.device import device_name
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.plan.trial import Protocol
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH


def control_sentence(result: SweepResult, words: Words = ENGLISH) -> str:
    """What the A/A control says of this machine."""
    control = result.control()
    if control is None or control.interval is None:
        return words("report.control_missing")
    interval = control.interval
    attached = result.manifest["experiment"].get("attach") is not None
    return words(
        "report.control_held" if control.trustworthy else "report.control_failed",
        how=words("report.control_asked_again" if attached else "report.control_relaunched"),
        span=f"{interval.speedup:.3f}x [{interval.low:.3f}, {interval.high:.3f}]",
    )


def preconditions(result: SweepResult, words: Words = ENGLISH) -> str:
    """Target, engine, device and protocol in one sentence."""
    experiment = result.manifest["experiment"]
    environment = result.manifest.get("environment") or {}
    target = experiment.get("target") or words("report.attached_server")
    parts = [
        words("report.target", target=target),
        engine_text(result, words),
        device_text(environment, words),
    ]
    for trial in result.every:
        protocol = trial.trial.protocol
        parts.append(
            words(
                "report.protocol",
                looks=looks_text(protocol, words),
                confidence=f"{protocol.confidence:.0%}",
                cells=len(result.trials),
                margin=f"{protocol.margin:.0%}",
            )
        )
        break
    separator = words("list.clauses")
    return words("report.preconditions", parts=separator.join(part for part in parts if part))


def looks_text(protocol: Protocol, words: Words = ENGLISH) -> str:
    """When a verdict could be reached: that is what the intervals pay for."""
    return words(f"report.looks_{protocol.looks}")


def engine_text(result: SweepResult, words: Words = ENGLISH) -> str:
    """`vllm 0.32.0`, from what the engines said; several versions are all named."""
    of_trials = (
        (facts.engine, facts.engine_version)
        for trial in result.every
        for facts in trial.engines.values()
    )
    of_suites = (engine for suite in result.suite_runs for engine in suite.engines)
    found = {
        f"{name} {version or words('report.version_unknown')}"
        for name, version in (*of_trials, *of_suites)
    }
    return words.listed(sorted(found)) or words("report.engine_unknown")


def device_text(environment: Mapping[str, Any], words: Words = ENGLISH) -> str:
    """The accelerators, or the processor where there is none."""
    name = device_name(environment)
    return words("report.processor_unknown") if name is None else words.sentence(name)
