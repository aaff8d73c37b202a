"""Which figures of a soak are looked at, and what is bad about each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """`name` as the windows have it; `name/PART` belongs to the figure `name`."""

    name: str
    kind: Literal["speed", "acceptance", "resource"]
    higher_is_better: bool = False
    limit: str | None = None
    """The figure that says where the resource ends; a number as text is the limit itself."""
    used: str | None = None
    """The figure that says how much of the limit is used in all; None: it is the figure itself."""
    room_min: float = 0.0
    """Where there is no limit: a leak must add at least so much within the horizon."""


FIGURES: tuple[Figure, ...] = (
    Figure("output_tok_per_s", "speed", higher_is_better=True),
    Figure("ttft_p50_s", "speed"),
    Figure("ttft_p99_s", "speed"),
    Figure("tpot_p50_s", "speed"),
    Figure("acceptance_rate", "acceptance", higher_is_better=True),
    Figure("acceptance_length", "acceptance", higher_is_better=True),
    Figure("acceptance_at", "acceptance", higher_is_better=True),
    Figure(
        "process_rss_bytes",
        "resource",
        limit="host_memory_total_bytes",
        used="host_memory_used_bytes",
    ),
    Figure("gpu_memory_used_bytes", "resource", limit="gpu_memory_total_bytes"),
    Figure("kv_cache_usage", "resource", limit="1"),
    Figure("process_open_files", "resource", limit="process_open_files_limit", room_min=200),
    Figure("process_threads", "resource", room_min=100),
    Figure("process_count", "resource", room_min=20),
)
_BY_NAME = {figure.name: figure for figure in FIGURES}


def judged_names(seen: Iterable[str]) -> dict[str, Figure]:
    """The figures among the names that were seen, in the order above; parts by themselves."""
    names = sorted(set(seen))
    return {
        name: figure
        for figure in FIGURES
        for name in names
        if name.partition("/")[0] == figure.name
    }


def part_of(name: str) -> str:
    return name.partition("/")[2]
