"""Reads an experiment file, and says everything that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path as FilePath

from orchestrator.errors import Fault, SpecError
from orchestrator.spec.document import MAX_BYTES, Document, key_text, parse
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.resolve import resolve
from orchestrator.spec.scenario import read_profile
from orchestrator.spec.translate import Finding
from orchestrator.spec.validate import validate


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
    experiment, more = validate(raw, known={item.path for item in findings} | document.unread)
    faults += [_fault(found, document) for found in [*findings, *more]]
    if experiment is not None:
        faults += _scenario_faults(experiment)
    if faults or experiment is None:
        raise SpecError(_ordered(faults))
    return experiment


def _scenario_faults(experiment: Experiment) -> list[Fault]:
    """What is wrong in the scenario files that the experiment names."""
    faults: list[Fault] = []
    for name in experiment.scenarios:
        try:
            read_profile(name)
        except SpecError as error:
            faults += error.faults
    return faults


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
