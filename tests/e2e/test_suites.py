"""`sweep --suites` by its command, over servers that already run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orchestrator.decide.suite_results import JudgedSuite
from orchestrator.decide.sweep_result import SweepResult, whole_sweep
from orchestrator.run.suites.record import CaseStatus
from orchestrator.store import SweepFolder
from tests.e2e.test_attach import ROOT, SPECULATING, command, experiment, healthy, simulated

LIMIT_S = 540


def result_of(results: Path, name: str) -> SweepResult:
    return whole_sweep(SweepFolder(results / name))


def cases(suite: JudgedSuite) -> dict[str, CaseStatus]:
    assert suite.result is not None, suite.outcome
    return {case.case: case.status for case in suite.result.cases}


def findings(suite: JudgedSuite) -> dict[str, str]:
    assert suite.result is not None, suite.outcome
    return {case.case: case.seen for case in suite.result.findings}


@pytest.mark.slow
def test_running_servers_are_put_to_suites_and_left_running(tmp_path: Path) -> None:
    with simulated() as (baseline, one), simulated(**SPECULATING) as (speculative, two):
        file = experiment(tmp_path, baseline, speculative)
        asked = [*command(file), "--suites", "functional,boundary"]
        ended = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
        assert ended.returncode == 0, ended.stderr + ended.stdout
        assert one.is_running() and two.is_running()
        assert healthy(baseline) and healthy(speculative)

    functional, boundary = result_of(tmp_path / "results", "attached").suite_runs
    for suite in (functional, boundary):
        assert findings(suite) == {}
        assert suite.result is not None and suite.result.complete and suite.result.simulated
        assert suite.result.ok is True
        assert "started by somebody else" in suite.result.notes[0]
    assert CaseStatus.NOT_RUN not in cases(functional).values()
    assert cases(boundary)["disconnect_thousands"] is CaseStatus.PASS
    report = (tmp_path / "results" / "attached" / "report.md").read_text()
    assert "## Suite: functional" in report and "## Suite: boundary" in report
