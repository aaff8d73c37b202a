"""The preconditions, line by line: without them a result is not comparable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.words import device_text, engine_text


def environment_rows(result: SweepResult, words: Words) -> list[tuple[str, str]]:
    """(what, value) of machine, software, models and protocol; what is not known says so."""
    manifest = result.manifest
    environment: Mapping[str, Any] = manifest.get("environment") or {}
    experiment = manifest["experiment"]
    product = environment.get("product") or {}
    memory = (environment.get("memory") or {}).get("total_bytes")
    system = environment.get("system") or {}
    storage = environment.get("storage") or {}
    unknown = words("fact.unknown")
    rows = [
        ("target", experiment.get("target") or words("report.attached_server")),
        ("engine", engine_text(result, words)),
        ("device", device_text(environment, words)),
        ("driver", environment.get("driver")),
        ("memory", f"{memory / 1024**3:.1f} GiB" if memory else None),
        ("storage", " ".join(str(storage[k]) for k in ("medium", "file_system") if storage.get(k))),
        ("system", " · ".join(str(system[k]) for k in ("os", "kernel") if system.get(k))),
        ("python", (environment.get("python") or {}).get("version")),
        ("engine_arguments", _pairs(experiment.get("engine") or {})),
        ("models", _models(manifest.get("models") or {})),
        ("sampling", _pairs(experiment.get("sampling") or {})),
        ("packages", _pairs(environment.get("packages") or {})),
        ("product", " ".join(str(product[k]) for k in ("version", "revision") if product.get(k))),
    ]
    return [(words(f"fact.{key}"), str(value) if value else unknown) for key, value in rows]


def prompt_rows(result: SweepResult, words: Words) -> list[dict[str, str]]:
    """What was asked: where the prompts come from, how many, how long, their hash."""
    rows = []
    for name, profile in (result.manifest.get("prompts") or {}).items():
        tokens = profile.get("tokens") or {}
        length = (
            f"{tokens['min']:g}–{tokens['median']:g}–{tokens['max']:g}"
            if {"min", "median", "max"} <= tokens.keys()
            else words("fact.unknown")
        )
        rows.append(
            {
                "name": str(name),
                "source": str(profile.get("source", "")),
                "prompts": str(profile.get("prompts", "")),
                "tokens": length,
                "categories": words.listed([str(c) for c in profile.get("categories") or {}]),
                "hash": str(profile.get("hash", "")),
            }
        )
    return rows


def _pairs(values: Mapping[str, Any]) -> str:
    return " · ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def _models(models: Mapping[str, Any]) -> str:
    return " · ".join(
        f"{name} ({facts.get('source')}, {facts.get('revision')})" for name, facts in models.items()
    )
