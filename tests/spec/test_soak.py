"""The `soak` section."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.spec.soak import Soak
from tests.spec.test_read import only_fault, with_lines


@pytest.mark.parametrize(
    ("given", "seconds"), [(90, 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("3 d", 259200)]
)
def test_durations(given: Any, seconds: float) -> None:
    assert Soak.model_validate({"duration": given}).duration == seconds


@pytest.mark.parametrize(
    ("duration", "window_s", "control_s"),
    [("1m", 5, 60), ("90m", 22.5, 270), ("7d", 600, 300)],
    ids=["short", "an evening", "a week"],
)
def test_windows_grow_with_the_soak_so_that_their_number_does_not(
    duration: str, window_s: float, control_s: float
) -> None:
    soak = Soak.model_validate({"duration": duration})
    assert (soak.window_s, soak.control_s) == (window_s, control_s)


@pytest.mark.parametrize(
    ("section", "key", "rule"),
    [
        ("{duration: soon}", "soak.duration", "must be a duration"),
        ("{bursts: {lasts: 5}}", "soak.bursts", "acts only with profile: bursty"),
        (
            "{profile: bursty, bursts: {lasts: 60, every: 90}}",
            "soak.bursts.lasts",
            "must be less than half of bursts.every",
        ),
        (
            "{duration: 60, faults: [{kind: cpu_hog, at: 55}]}",
            "soak.faults[0].at",
            "must end before the soak does",
        ),
        (
            "{faults: [{kind: cpu_hog, at: 50}, {kind: engine_killed, at: 55}]}",
            "soak.faults[1].at",
            "must begin after the fault before it",
        ),
        ("{faults: [{kind: disk_full, at: 5}]}", "soak.faults[0].path", "is required"),
        ("{load: {concurrency: 1, rate_rps: 2}}", "soak.load.concurrency", "must not be given"),
        ("{mix: {nobody: 1}}", "soak.mix.nobody", "must name workloads of this file"),
        ("{faults: [{kind: engine_kiled, at: 5}]}", "soak.faults[0].kind", "must be one of"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, section: str, key: str, rule: str) -> None:
    fault = only_fault(tmp_path, with_lines(f"soak: {section}\n"))
    assert fault.key == key and fault.rule.startswith(rule)


def test_a_duration_is_no_truth() -> None:
    with pytest.raises(ValidationError):
        Soak.model_validate({"duration": True})
