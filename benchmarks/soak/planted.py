"""Soaks in which it is known what happens: windows as a suite would have recorded them.

Noise as real servers have it: each figure wanders (AR(1), lag one 0.5), and a third of it is the
host's, shared by both arms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.run.suites.record import SuiteRecord

FloatArray: TypeAlias = NDArray[np.float64]
GIB = 2.0**30
TOTAL_BYTES = 64 * GIB
RSS_BYTES = 4 * GIB
HORIZON_H = 168.0
BOUND_PER_H = (TOTAL_BYTES - RSS_BYTES) / HORIZON_H
"""A leak above this fills the host within a week: 366 MiB an hour."""
NOISE = 0.02
MEMORY_NOISE = 0.01
CATEGORIES = ("chat", "code")


@dataclass
class Soak:
    """The figures of both arms; a scenario changes them. Shape of each: (windows,)."""

    at_h: FloatArray
    load: FloatArray
    arms: dict[str, dict[str, FloatArray]]
    rng: np.random.Generator

    def scale(self, arm: str, name: str, by: FloatArray | float) -> None:
        self.arms[arm][name] = self.arms[arm][name] * by

    def add(self, arm: str, name: str, more: FloatArray | float) -> None:
        self.arms[arm][name] = self.arms[arm][name] + more

    @property
    def share(self) -> FloatArray:
        """0 at the beginning, 1 at the end."""
        return self.at_h / self.at_h[-1]


Scenario = Callable[[Soak], None]


def sound(soak: Soak) -> None:
    """Nothing is planted."""


def leak(per_h: float, *arms: str) -> Scenario:
    def plant(soak: Soak) -> None:
        for arm in arms or ("speculative",):
            soak.add(arm, "process_rss_bytes", per_h * soak.at_h)

    return plant


def fades(arm: str, name: str, to: float) -> Scenario:
    """A figure changes evenly to `to` times what it was."""

    def plant(soak: Soak) -> None:
        soak.scale(arm, name, np.exp(np.log(to) * soak.share))

    return plant


def both(*plants: Scenario) -> Scenario:
    def plant(soak: Soak) -> None:
        for one in plants:
            one(soak)

    return plant


def shared_slow_down(soak: Soak) -> None:
    """A neighbour takes more and more of the host from both arms."""
    for arm in soak.arms:
        soak.scale(arm, "output_tok_per_s", 1 - 0.15 * soak.share)
        soak.scale(arm, "tpot_p50_s", 1 / (1 - 0.15 * soak.share))


def stalls(soak: Soak) -> None:
    """Every 20 minutes everything stands still for 8 s, with speculation only."""
    every = max(1, round(1 / 3 / (soak.at_h[1] - soak.at_h[0])))
    soak.arms["speculative"]["longest_gap_s"][every // 2 :: every] += 8.0


def saw_tooth(soak: Soak) -> None:
    """Memory grows by a GiB, is given back, and so on: five and a half times."""
    phase = (5.5 * soak.share + 0.2) % 1.0
    soak.add("speculative", "process_rss_bytes", GIB * phase)


def diurnal(soak: Soak) -> None:
    """Two and a quarter periods of load; latency and throughput follow it in both arms."""
    soak.load = 1 + 0.5 * np.sin(2 * np.pi * 2.25 * soak.share)
    for arm, answers in (("baseline", 0.6), ("speculative", 0.9)):
        soak.scale(arm, "output_tok_per_s", soak.load**0.8)
        soak.scale(arm, "ttft_p50_s", soak.load**answers)
        soak.scale(arm, "tpot_p50_s", soak.load ** (answers / 2))
        soak.scale(arm, "kv_cache_usage", soak.load)


def warms_up(soak: Soak) -> None:
    """Two GiB more, most of it in the first third."""
    soak.add("speculative", "process_rss_bytes", 2 * GIB * (1 - np.exp(-6 * soak.share)))


def step_down(soak: Soak) -> None:
    """From the middle on, a tenth slower."""
    late = soak.share > 0.5
    soak.scale("speculative", "output_tok_per_s", np.where(late, 0.9, 1.0))


def descriptors(soak: Soak) -> None:
    """One file in each window stays open."""
    soak.add("speculative", "process_open_files", np.arange(soak.at_h.size, dtype=float))


PLANTED: dict[str, tuple[Scenario, str, tuple[str, ...]]] = {
    "nothing": (sound, "no finding", ()),
    "leak of 2 GiB an hour": (leak(2 * GIB), "leaking", ("growth: process_rss_bytes",)),
    "leak 1.5 times the bound": (
        leak(1.5 * BOUND_PER_H), "leaking", ("growth: process_rss_bytes",),
    ),
    "leak a quarter of the bound": (leak(0.25 * BOUND_PER_H), "no finding", ()),
    "the same leak in both arms": (leak(GIB, "baseline", "speculative"), "no finding", ()),
    "memory saw-tooth": (saw_tooth, "no finding", ()),
    "memory that levels off": (warms_up, "no finding", ()),
    "files left open": (descriptors, "leaking", ("growth: process_open_files",)),
    "acceptance of one category fades by 12 %": (
        fades("speculative", "acceptance_length/code", 0.88),
        "drifting",
        ("trend: acceptance_length/code",),
    ),
    "throughput fades by 10 %": (
        fades("speculative", "output_tok_per_s", 0.9), "drifting", ("trend: output_tok_per_s",),
    ),
    "a tenth slower from the middle on": (
        step_down, "drifting", ("trend: output_tok_per_s",),
    ),
    "both arms slow down alike": (shared_slow_down, "no finding", ()),
    "diurnal load": (diurnal, "no finding", ()),
    "stalls every 20 minutes": (stalls, "fragile", ("stalls",)),
}  # fmt: skip
"""Name: what is planted, the verdict it must lead to, the findings that must be made, no others."""


def planted_soak(
    scenario: Scenario, seed: int, *, windows: int = 120, hours: float = 6.0
) -> SuiteRecord:
    """A soak of both arms with a restart control at its end."""
    rng = np.random.default_rng(seed)
    soak = _quiet(rng, windows, hours)
    scenario(soak)
    width_s = hours * 3600 / windows
    rows = [_row(soak, index, width_s, "soak") for index in range(windows)]
    fresh = _quiet(rng, 12, hours / 10)
    rows += [_row(fresh, index, width_s, "restarted", windows) for index in range(12)]
    settings: dict[str, Any] = {
        "profile": "constant",
        "horizon_s": HORIZON_H * 3600,
        "margin": 0.05,
        "restart_control": True,
        "flush_control": False,
        "control_s": 12 * width_s,
    }
    return SuiteRecord(
        suite="soak",
        pair_key="pair",
        baseline=Deployment("tiny", {}).as_dict(),
        speculative=Deployment("tiny", {}, Speculation("ngram", 4)).as_dict(),
        asked=(),
        extra={"soak": {"windows": rows, "events": [], "settings": settings}},
        simulated=True,
    )


def _quiet(rng: np.random.Generator, windows: int, hours: float) -> Soak:
    at_h = (np.arange(windows) + 0.5) * hours / windows
    host = _wander(rng, windows)
    arms: dict[str, dict[str, FloatArray]] = {}
    for arm, faster in (("baseline", 1.0), ("speculative", 1.4)):

        def level(mean: float, noise: float = NOISE, host: FloatArray = host) -> FloatArray:
            own = 0.8 * _wander(rng, windows) + 0.6 * host
            return mean * np.exp(noise * own)

        figures = {
            "output_tok_per_s": level(400 * faster),
            "ttft_p50_s": level(0.2, 2 * NOISE),
            "ttft_p99_s": level(0.5, 4 * NOISE),
            "tpot_p50_s": level(0.02 / faster),
            "kv_cache_usage": level(0.2, 4 * NOISE),
            "process_rss_bytes": level(RSS_BYTES, MEMORY_NOISE),
            "process_open_files": 80.0 + rng.integers(0, 4, windows),
            "process_threads": np.full(windows, 40.0),
            "process_count": np.full(windows, 3.0),
            "longest_gap_s": level(0.15, 0.2),
            "requests": np.full(windows, 100.0),
            "errors": (rng.random(windows) < 0.01).astype(float),
        }
        if arm == "speculative":
            figures["acceptance_rate"] = level(0.55)
            figures["acceptance_length"] = level(2.6)
            figures |= {f"acceptance_length/{name}": level(2.6) for name in CATEGORIES}
            figures |= {f"acceptance_at/{i}": level(0.8**i) for i in (1, 2)}
        figures["host_memory_total_bytes"] = np.full(windows, TOTAL_BYTES)
        arms[arm] = figures
    return Soak(at_h, np.ones(windows), arms, rng)


def _wander(rng: np.random.Generator, windows: int, rho: float = 0.5) -> FloatArray:
    steps = rng.normal(size=windows) * np.sqrt(1 - rho * rho)
    level, found = float(rng.normal()), np.empty(windows)
    for index, step in enumerate(steps):
        level = rho * level + float(step)
        found[index] = level
    return found


def _row(soak: Soak, index: int, width_s: float, phase: str, offset: int = 0) -> dict[str, Any]:
    return {
        "at_s": float(soak.at_h[index] * 3600 + offset * width_s),
        "seconds": width_s,
        "phase": phase,
        "load": float(soak.load[index]),
        "burst": False,
        "fault": False,
        "life": {"baseline": int(phase != "soak"), "speculative": int(phase != "soak")},
        "arms": {
            arm: {name: float(values[index]) for name, values in figures.items()}
            for arm, figures in soak.arms.items()
        },
    }
