"""Reads an experiment file, and says everything that is wrong with it at once."""

from __future__ import annotations

import copy
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import Fault, SpecError
from orchestrator.spec.document import MAX_BYTES, Document, Path, key_text, parse
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.resolve import resolve
from orchestrator.spec.translate import Finding, finding

_ROUNDS = 12
"""How often the file is looked at again without the parts that are already known to be wrong."""


def read_experiment(path: str | FilePath) -> Experiment:
    """The experiment in a YAML file, its references resolved relative to the file.

    Raises: SpecError with every fault of the file, in the order of its lines.
    """
    file = FilePath(path)
    document = parse(_text(file, str(path)), str(path))
    faults = list(document.faults)
    if document.value is not None and not isinstance(document.value, dict):
        faults.append(Fault(str(path), 1, "", "must be a mapping of keys to values"))
    if not isinstance(document.value, dict):
        raise SpecError(faults)
    raw, findings = resolve(document.value, file.resolve().parent)
    experiment, more = validate(raw, known=findings)
    faults += [_fault(found, document) for found in [*findings, *more]]
    if faults or experiment is None:
        raise SpecError(_ordered(faults))
    return experiment


def validate(
    raw: dict[str, Any], *, known: list[Finding] | None = None
) -> tuple[Experiment | None, list[Finding]]:
    """The experiment, or everything that is wrong with it.

    A rule between two keys is only looked at when both are well formed. So the parts that are wrong
    are taken out and the rest is looked at again, until nothing new comes up; what a part's absence
    itself would cause is not reported.
    """
    rest = copy.deepcopy(raw)
    found: list[Finding] = []
    wrong: set[Path] = {item.path for item in known or []}
    for _ in range(_ROUNDS):
        try:
            experiment = Experiment.model_validate(rest)
        except ValidationError as error:
            details = error.errors(include_url=False)
            round_found = [finding(detail, Experiment, rest) for detail in details]
            fresh = [item for item in round_found if not _follows_from(item, wrong)]
            found += fresh
            wrong |= {item.path for item in fresh}
            taken_out = [_take_out(rest, item.path) for item in round_found]
            if not any(taken_out):
                break
        else:
            return (None, found) if found else (experiment, [])
    return None, found


def _follows_from(item: Finding, wrong: set[Path]) -> bool:
    places = [item.path, *item.involves]
    return any(
        place[: len(known)] == known or known[: len(place)] == place
        for place in places
        for known in wrong
    )


def _take_out(rest: dict[str, Any], path: Path) -> bool:
    """Removes the innermost mapping key on `path`; True when there was something to remove."""
    here: Any = rest
    holder: tuple[dict[str, Any], str] | None = None
    for part in path:
        if isinstance(here, dict) and part in here:
            holder = (here, str(part))
            here = here[part]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        else:
            break
    else:
        if holder is not None:
            del holder[0][holder[1]]
            return True
    return False


def _text(file: FilePath, shown: str) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            size = file.stat().st_size
            raise SpecError(
                [Fault(shown, None, "", f"must be at most {MAX_BYTES} bytes", f"{size}")]
            )
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError([Fault(shown, None, "", "the file must exist")]) from None
    except UnicodeDecodeError as error:
        raise SpecError(
            [Fault(shown, None, "", "must be UTF-8 text", f"a bad byte at offset {error.start}")]
        ) from None
    except OSError as error:
        raise SpecError(
            [Fault(shown, None, "", "must be a file that can be read", error.strerror)]
        ) from None


def _fault(item: Finding, document: Document) -> Fault:
    return Fault(
        file=document.file,
        line=document.line(item.path),
        key=key_text(item.path),
        rule=item.rule,
        value=item.value,
        hint=item.hint,
    )


def _ordered(faults: list[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda fault: (fault.line or 0, fault.key))
