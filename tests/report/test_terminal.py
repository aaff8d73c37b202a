from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.terminal import result_table
from tests.decide.results_by_hand import result_of, sweep_of, trial_of


@pytest.fixture
def sweep() -> SweepResult:
    return sweep_of(
        result_of(trial_of(kind="aa_control", load=4), 1.0),
        result_of(trial_of(load=1, workload="rewrite", k=6), 1.9),
        result_of(trial_of(load=4, workload="rewrite", k=6, temperature=0.8), 0.8),
        result_of(trial_of(load=4, workload="chat", k=2), [1.0, 1.1, 0.9, 1.1, 0.9, 1.0]),
        result_of(trial_of(load=1, workload="chat", k=2), 1.0, noise=0.001),
    )


def shown(sweep: SweepResult, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(result_table(sweep))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_verdict_is_whole_on_its_line(sweep: SweepResult, width: int) -> None:
    lines = shown(sweep, width)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(line.rstrip() for line in lines)
    assert "faster\n" in text
    assert "slower\n" in text
    (undecided,) = [line for line in lines if "cannot tell" in line]
    assert "6 (+" in undecided


def test_two_loads_are_no_ladder_to_speak_of(sweep: SweepResult) -> None:
    assert not any("Break-even load" in line for line in shown(sweep, 100))
    more = [
        result_of(trial_of(load=load, k=4), ratio) for load, ratio in [(1, 1.3), (4, 1.2), (8, 0.8)]
    ]
    lines = " ".join(shown(sweep_of(*more), 200))
    assert "Break-even load" in lines
