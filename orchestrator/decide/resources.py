"""What the draft takes besides time: memory, KV capacity, energy, start-up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.decide.conclusion import Conclusion, Kind
from orchestrator.decide.conditions import conditions_of, ids
from orchestrator.decide.message import Message, said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.records import ARMS, Arm

DEVICE_MEMORY = "gpu_memory_used_max_bytes"
HOST_MEMORY = "process_rss_max_bytes"
POWER = "gpu_power_mean_w"


@dataclass(frozen=True)
class Needs:
    """One arm's needs over some trials of one deployment pair; None where not measured."""

    device_memory_bytes: float | None
    """Largest reading of the device's used memory (GPU)."""
    host_memory_bytes: float | None
    """Largest resident size of the engine's processes."""
    kv_capacity_tokens: float | None
    start_s: float | None
    """Shortest start that was seen: later ones may find caches warm, but none is faster than it."""
    energy_j_per_token: float | None
    """Mean device power / output tokens per second, over the trials."""


def needs(trials: Sequence[TrialResult], arm: Arm) -> Needs:
    """Formula: maxima over the trials; energy = mean of gpu_power_w / output_tok_per_s.

    Unit: bytes, tokens, s, J. Undefined: None where no trial has the figure.
    """
    figures = [trial.figures[arm] for trial in trials if trial.valid_pairs]
    engines = [trial.engines[arm] for trial in trials if arm in trial.engines]
    energies = [
        f[POWER] / f["output_tok_per_s"]
        for f in figures
        if POWER in f and f.get("output_tok_per_s", 0.0) > 0
    ]
    starts = [e.start_s for e in engines if e.start_s is not None]
    capacities = [e.kv_capacity_tokens for e in engines if e.kv_capacity_tokens is not None]
    return Needs(
        device_memory_bytes=max(
            (f[DEVICE_MEMORY] for f in figures if DEVICE_MEMORY in f), default=None
        ),
        host_memory_bytes=max((f[HOST_MEMORY] for f in figures if HOST_MEMORY in f), default=None),
        kv_capacity_tokens=min(capacities, default=None),
        start_s=min(starts, default=None),
        energy_j_per_token=sum(energies) / len(energies) if energies else None,
    )


def _largest(figures: Sequence[Mapping[str, float]], name: str) -> float | None:
    return max((f[name] for f in figures if name in f), default=None)


def by_deployment(result: SweepResult) -> dict[str, list[TrialResult]]:
    """Comparisons by deployment pair, in the plan's order."""
    groups: dict[str, list[TrialResult]] = {}
    for trial in result.trials:
        groups.setdefault(trial.trial.pair.key, []).append(trial)
    return groups


def resources(result: SweepResult) -> Iterator[Conclusion]:
    """One conclusion for every speculative deployment that ran."""
    for trials in by_deployment(result).values():
        ran = [trial for trial in trials if trial.engines or trial.valid_pairs]
        if not ran:
            continue
        of = {arm: needs(ran, arm) for arm in ARMS}
        measured, gaps = needs_said(of["baseline"], of["speculative"])
        yield Conclusion(
            kind=Kind.RESOURCES,
            key="resources.measured" if measured else "resources.nothing",
            tone="neutral" if measured else "unknown",
            conditions=conditions_of(result, ran),
            values={
                "draft": ran[0].trial.pair.speculative.label(),
                "facts": tuple(measured),
            },
            evidence=ids(ran),
            not_measured=tuple(gaps),
        )


def needs_said(baseline: Needs, speculative: Needs) -> tuple[list[Message], list[Message]]:
    """(what both arms need, as far as both were measured; what was not measured)."""
    facts: list[Message] = []
    gaps: list[Message] = []
    for name, scale in (
        ("device_memory_bytes", 1 / 1024**3),
        ("host_memory_bytes", 1 / 1024**3),
        ("kv_capacity_tokens", 1.0),
        ("start_s", 1.0),
        ("energy_j_per_token", 1.0),
    ):
        a, b = getattr(baseline, name), getattr(speculative, name)
        if a is None or b is None:
            gaps.append(said(f"gap.{name}"))
            continue
        if name == "start_s":
            gaps.append(said("gap.start_order"))
        facts.append(
            said(
                f"resources.{name}",
                baseline=a * scale,
                speculative=b * scale,
                difference=(b - a) * scale,
                percent=100 * (b - a) / a if a else 0.0,
            )
        )
    return facts, gaps
