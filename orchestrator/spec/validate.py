"""Every broken rule of an experiment, those between well-formed and malformed parts included."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from orchestrator.spec.document import Path
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.speculation import as_probably_meant
from orchestrator.spec.translate import Finding, finding

_ROUNDS = 32
"""How often the rest is looked at again once the parts known to be wrong have been set aside."""

_ENTRY = {"method": "ngram", "speculation_length": 1}
_WORKLOAD = {"prompts": "bundled:stand-in", "output_tokens": 64}
_STAND_INS: dict[str, Any] = {
    "name": "stand-in",
    "target": "stand-in",
    "sweep": {"speculation": [_ENTRY]},
    "speculation": [_ENTRY],
    "speculation_length": 1,
    "draft": "stand-in",
    "workloads": [_WORKLOAD | {"name": "stand-in"}],
    "prompts": "bundled:stand-in",
    "output_tokens": 64,
    "baseline": "http://stand-in",
    "speculative": "http://stand-in",
    "device_hour": 1.0,
}
"""What a required key holds while the rest is looked at. Never part of a result."""


def validate(
    raw: dict[str, Any], *, known: set[Path] | None = None
) -> tuple[Experiment | None, list[Finding]]:
    """The experiment, or everything that is wrong with it.

    A rule between two keys is only looked at when both are well formed. So what is wrong is set
    aside and the rest is looked at again, until nothing comes up; what the setting aside itself
    causes is not reported. `known` are places of faults
    found before, which are not to be found again.
    """
    rest = copy.deepcopy(raw)
    found: list[Finding] = []
    wrong = set(known or ())
    for _ in range(_ROUNDS):
        try:
            experiment = Experiment.model_validate(rest)
        except ValidationError as error:
            details = [d for d in error.errors(include_url=False) if not _emptied_by_faults(d)]
            round_found = [finding(detail, Experiment, rest) for detail in details]
            wrong |= {item.meant for item in round_found if item.meant is not None}
            fresh = [item for item in round_found if not _follows_from(item, wrong)]
            found += fresh
            for item in round_found:
                wrong.add(_set_aside(rest, item.path))
                wrong.add(item.path)
        else:
            return (None, found) if found else (experiment, [])
    return None, found


def _emptied_by_faults(detail: ErrorDetails) -> bool:
    """A list all of whose items are faulty is called too short as well, which it is not."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _follows_from(item: Finding, wrong: set[Path]) -> bool:
    places = [item.path, *item.involves]
    return any(
        place[: len(known)] == known or known[: len(place)] == place
        for place in places
        for known in wrong
    )


def _set_aside(rest: dict[str, Any], path: Path) -> Path:
    """Takes the part at `path` out, or puts a stand-in where a required one is missing.

    Returns what was changed: `path`, or the part around it where that had to go.
    """
    if path and path[-1] in ("method", "mode"):  # the other keys mean nothing without it
        meant = as_probably_meant(_at(rest, path[:-1])) if path[-1] == "method" else None
        entry = _at(rest, path[:-2])
        if isinstance(entry, list) and isinstance(path[-2], int) and meant is not None:
            entry[path[-2]] = meant
            return path
        if isinstance(entry, list) and isinstance(path[-2], int):
            entry[path[-2]] = dict(_ENTRY)
            return path[:-1]
        path = path[:-1]
    for length in range(len(path), 0, -1):
        holder, name = _at(rest, path[: length - 1]), path[length - 1]
        if isinstance(holder, list) and isinstance(name, int) and path[0] == "workloads":
            if length == len(path) and name < len(holder):  # not a mapping at all
                holder[name] = _WORKLOAD | {"name": f"stand-in-{name}"}
                return path[:length]
            continue
        if not isinstance(holder, dict) or not isinstance(name, str):
            continue
        if name in holder:
            del holder[name]
            return path[:length]
        if length == len(path) and name in _STAND_INS:
            value = copy.deepcopy(_STAND_INS[name])
            if name == "name" and len(path) > 1:
                value = f"{value}-{path[1]}"
            holder[name] = value
            return path
    return path


def _at(rest: Any, path: Path) -> Any:
    here = rest
    for part in path:
        inside_mapping = isinstance(here, dict) and part in here
        if inside_mapping or (isinstance(here, list) and part in range(len(here))):
            here = here[part]
        else:
            return None
    return here
