"""A soak's record, read: its windows as series, its events, its controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.analyse.soak.recovery import Seen
from orchestrator.analyse.soak.series import Series
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.record import SuiteRecord

HOUR_S = 3600.0
Row = Mapping[str, Any]


@dataclass(frozen=True)
class SoakFacts:
    """`windows` are rows as `run.soak.window` writes them."""

    windows: tuple[Row, ...]
    events: tuple[Row, ...]
    settings: Row
    unavailable: Mapping[str, str]
    """Why a control could not be made, by its name."""

    @property
    def hours(self) -> float:
        return self.elapsed_s / HOUR_S

    @property
    def elapsed_s(self) -> float:
        """Of load, in all lives, without what came after the soak."""
        return sum(float(row["seconds"]) for row in self.of("soak"))

    def of(self, phase: str) -> list[Row]:
        return [row for row in self.windows if row["phase"] == phase]

    def names(self) -> set[str]:
        return {
            name for row in self.of("soak") for arm in ARMS for name in row["arms"].get(arm, {})
        }

    def series(self, name: str, arm: Arm, *, resource: bool = False) -> Series:
        """Of the soak alone. Windows with a burst or a fault are left out; a resource is not
        changed for good by a burst, and those windows stay."""
        rows = [
            row
            for row in self.of("soak")
            if not (row["fault"] if resource else row["fault"] or row["burst"])
        ]
        return Series.of(
            [row["at_s"] / HOUR_S for row in rows],
            [row["arms"].get(arm, {}).get(name) for row in rows],
            [row["load"] for row in rows],
            [row["life"].get(arm, 0) for row in rows],
        )

    def values(self, name: str, arm: Arm, phase: str) -> list[float]:
        found = (row["arms"].get(arm, {}).get(name) for row in self.of(phase))
        return [float(value) for value in found if value is not None]

    def latest(self, name: str, arm: Arm) -> float | None:
        found = self.values(name, arm, "soak")
        return found[-1] if found else None

    def count(self, name: str, arm: Arm) -> int:
        """Over the windows without a burst or a fault."""
        quiet = (row for row in self.of("soak") if not row["fault"] and not row["burst"])
        return int(sum(row["arms"].get(arm, {}).get(name) or 0 for row in quiet))

    def edge(self, name: str, arm: Arm, *, first: bool, seconds: float) -> list[float]:
        """The windows of the first, or last, so many seconds of the soak; settling left out."""
        rows = [row for row in self.of("soak") if not row["fault"] and not row["burst"]]
        skip = int(np.ceil(0.02 * len(rows)))
        rows = rows[skip:]
        taken: list[Row] = []
        for row in rows if first else rows[::-1]:
            if sum(float(one["seconds"]) for one in taken) >= seconds:
                break
            taken.append(row)
        found = (row["arms"].get(arm, {}).get(name) for row in taken)
        return [float(value) for value in found if value is not None]


def soak_facts(record: SuiteRecord) -> SoakFacts:
    """Raises: KeyError for a record that is no soak's."""
    soak = record.extra["soak"]
    return SoakFacts(
        windows=tuple(soak["windows"]),
        events=tuple(soak["events"]),
        settings=soak["settings"],
        unavailable=soak.get("unavailable", {}),
    )


def seen_of(event: Row, arm: Arm) -> list[Seen]:
    rows: Sequence[Sequence[Any]] = event["requests"].get(arm, ())
    return [Seen(*row) for row in rows]


def quiet_after(facts: SoakFacts, event: Row) -> Iterator[Row]:
    """The windows after an event, up to the next one."""
    for row in facts.windows:
        if row["at_s"] - row["seconds"] / 2 < event["until_s"]:
            continue
        if row["fault"] or row["burst"] or row["phase"] != "soak":
            return
        yield row
