"""The facts that a result rests on: when one of them changes, the result is void."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.store.comparable import ENGINE_PACKAGES


@dataclass(frozen=True)
class Fact:
    """A name and its value in plain JSON; None = it was not known when it was measured."""

    name: str
    value: Any


@dataclass(frozen=True)
class Checked:
    """A fact tested against the present; `holds` is None where it cannot be tested here."""

    name: str
    then: Any
    now: Any
    holds: bool | None


def facts_of(
    environment: Mapping[str, Any], models: Mapping[str, Mapping[str, Any] | None]
) -> tuple[Fact, ...]:
    """Everything of an environment snapshot and of the models that a decision depends on.

    `models`: by role (`target`, `draft`), with `name` and `revision`; None = there is none.
    """
    return tuple(Fact(name, value) for name, value in _facts(environment, models))


def _facts(
    environment: Mapping[str, Any], models: Mapping[str, Mapping[str, Any] | None]
) -> Iterator[tuple[str, Any]]:
    processor = environment.get("processor") or {}
    yield "processor.model", processor.get("model")
    yield "processor.usable_cores", processor.get("usable_cores")
    container = environment.get("container") or {}
    yield "container.cpu_cores", container.get("cpu_cores")
    devices: Sequence[Mapping[str, Any]] = environment.get("accelerators") or []
    for key in ("model", "memory_bytes", "driver", "power_limit_w", "mig"):
        yield f"accelerators.{key}", [device.get(key) for device in devices]
    packages = environment.get("packages") or {}
    for name in ENGINE_PACKAGES:
        yield f"packages.{name}", packages.get(name)
    for role, model in models.items():
        if model is not None:
            yield f"{role}.revision", model.get("revision")


def check_facts(then: Sequence[Fact], now: Sequence[Fact]) -> tuple[Checked, ...]:
    """Each stored fact against the present.

    A package that is absent is absent: None equals None there. A model whose revision is not known
    on either side cannot be tested.
    """
    present = {fact.name: fact.value for fact in now}
    return tuple(
        Checked(fact.name, fact.value, present.get(fact.name), _holds(fact, present))
        for fact in then
    )


def _holds(fact: Fact, present: Mapping[str, Any]) -> bool | None:
    if fact.name not in present:
        return None
    value = present[fact.name]
    if fact.name.endswith(".revision") and (value is None or fact.value is None):
        return None
    return bool(value == fact.value)
