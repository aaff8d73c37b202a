"""A trial's numbers, kept beside its records so that they need not be derived again.

The records stay the truth: what is kept is used only while no record has changed since and the code
that derives is the same. It may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.decide.trial_result import TrialResult, read_trial
from orchestrator.errors import StoreError
from orchestrator.measure.slo import SloBounds
from orchestrator.plan.trial import Trial
from orchestrator.store import TrialFolder

PACKAGES = ("analyse", "decide", "measure", "plan", "store")
"""Where the code is that turns records into a `TrialResult`, with `records.py`."""


def trial_result(trial: Trial, folder: TrialFolder, slo: SloBounds | None = None) -> TrialResult:
    """`read_trial`, from what is kept where that still holds. Raises: StoreError, as it does."""
    state = folder.state()
    if state is None:  # it has not ended: there is more to come
        return read_trial(trial, folder, slo)
    key = hashlib.sha256(f"{code_hash()} {slo!r} {state}".encode()).hexdigest()
    kept = folder.derived(key)
    if kept is not None:
        with contextlib.suppress(ValidationError):
            return replace(_adapter().validate_json(kept), trial=trial)
    result = read_trial(trial, folder, slo)
    with contextlib.suppress(StoreError):  # a folder that may only be read is read more slowly
        # Not pydantic's own JSON: it writes infinity as null, which would read back as "undefined".
        folder.save_derived(key, json.dumps(_adapter().dump_python(result, mode="json")))
    return result


@functools.cache
def code_hash(packages: tuple[str, ...] = PACKAGES) -> str:
    """Of the source in some packages, templates and catalogues too: another version of it derives
    anew."""
    root = Path(__file__).resolve().parents[1]
    files = [root / "records.py"]
    for package in packages:
        files += sorted(
            path for path in (root / package).rglob("*") if path.is_file() and path.suffix != ".pyc"
        )
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.cache
def _adapter() -> TypeAdapter[TrialResult]:
    return TypeAdapter(TrialResult)
