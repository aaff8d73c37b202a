"""One side of a comparison: a sweep, or what a decision file kept of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.decide.device import engine_names
from orchestrator.decide.measured_cell import MeasuredCell, as_plain, cell_from, measured_cells
from orchestrator.decide.suites import suites_of
from orchestrator.decide.sweep_result import SweepResult


@dataclass(frozen=True)
class SuiteSeen:
    """A suite's judgement, as far as a comparison needs it."""

    suite: str
    label: str
    ok: bool | None
    verdict: str


@dataclass(frozen=True)
class Side:
    name: str
    simulated: bool
    facts: Mapping[str, Any]
    """Environment, models, engine arguments: flat, by dotted name."""
    cells: tuple[MeasuredCell, ...]
    suites: tuple[SuiteSeen, ...] = ()


def side_of(result: SweepResult) -> Side:
    return Side(
        name=result.name,
        simulated=result.simulated,
        facts=side_facts(result),
        cells=measured_cells(result),
        suites=tuple(SuiteSeen(s.suite, s.label, s.ok, s.verdict) for s in suites_of(result)),
    )


def side_as_plain(side: Side) -> dict[str, Any]:
    """Plain JSON that `side_from` reads back."""
    return {
        "name": side.name,
        "simulated": side.simulated,
        "facts": dict(side.facts),
        "cells": [as_plain(cell) for cell in side.cells],
        "suites": [[s.suite, s.label, s.ok, s.verdict] for s in side.suites],
    }


def side_from(plain: Mapping[str, Any]) -> Side:
    """Raises: KeyError, TypeError, ValueError for anything else than `side_as_plain` writes."""
    return Side(
        name=plain["name"],
        simulated=plain["simulated"],
        facts=plain["facts"],
        cells=tuple(cell_from(cell) for cell in plain["cells"]),
        suites=tuple(SuiteSeen(*suite) for suite in plain["suites"]),
    )


PASSING = (
    "memory.available_bytes",
    "processor.clock_hz",
    "load_average",
    "taken_unix_s",
    "environment",
)
"""What an environment snapshot holds of the moment, or by name only; it is not compared."""
_PASSING_OF_DEVICES = ("temperature_c", "memory_used_bytes", "sm_clock_hz", "processes", "power_w")


def side_facts(result: SweepResult) -> dict[str, Any]:
    """What may explain a difference between two sweeps, flat."""
    manifest = result.manifest
    experiment = manifest["experiment"]
    facts: dict[str, Any] = {"target": experiment.get("target")}
    for trial in result.trials[:1]:
        baseline = trial.trial.pair.baseline
        facts |= {"target": baseline.target, **_flat("engine_argument", baseline.engine)}
    facts["engine"] = ", ".join(engine_names(result.every)) or None
    for name, model in (manifest.get("models") or {}).items():
        facts[f"model.{name}.revision"] = model.get("revision")
    for name, prompts in (manifest.get("prompts") or {}).items():
        facts[f"prompts.{name}"] = prompts.get("hash")
    for name, value in (manifest.get("environment") or {}).items():
        if name == "accelerators":
            for index, device in enumerate(value):
                kept = {k: v for k, v in device.items() if k not in _PASSING_OF_DEVICES}
                facts |= _flat(f"accelerator{index}", kept)
        elif name not in PASSING:
            facts |= _flat(name, value)
    return {name: value for name, value in facts.items() if name not in PASSING}


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        found |= _flat(f"{prefix}.{name}", inner)
    return found
