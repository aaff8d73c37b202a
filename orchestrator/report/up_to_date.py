"""Whether the report that lies there is still the report of what lies there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.decide.derived import PACKAGES, code_hash
from orchestrator.plan.identity import content_hash
from orchestrator.store import SweepFolder

_PASSING = ("environment", "created_unix_s")
"""Of a manifest: load and free memory of the moment change nothing. The fingerprint stays."""


@dataclass(frozen=True)
class Reported:
    """A report that was written and tracked to the end."""

    tracking: str
    """Where to look at it."""
    notes: tuple[str, ...]


def save_reported(folder: SweepFolder, how: Reported) -> None:
    """Remember that everything recorded by now is in the report and tracked. Raises: StoreError."""
    folder.save_reported({"of": _name(folder), **asdict(how)})


def reported(folder: SweepFolder) -> Reported | None:
    """None where a record, what was asked for, or the code that reports has changed since."""
    kept = folder.reported()
    if kept is None or kept["of"] != _name(folder):
        return None
    return Reported(str(kept["tracking"]), tuple(kept["notes"]))


def _name(folder: SweepFolder) -> str:
    asked: dict[str, Any] = folder.manifest()
    steady = {name: value for name, value in asked.items() if name not in _PASSING}
    return content_hash([steady, folder.state(), code_hash((*PACKAGES, "report", "search", "run"))])
