from __future__ import annotations

import io

import pytest
from rich.console import Console

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.markdown import markdown_report
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


def test_a_verdict_that_its_interval_contradicts_is_marked_and_explained() -> None:
    # Five cells that do not differ, and one whose own interval just leaves the margin.
    pairs = [0.92, 0.97, 0.89, 0.96, 0.90, 0.94, 0.95, 0.91]
    even = [
        result_of(trial_of(load=load, k=2), [1.0, 1.1, 0.9, 1.1, 0.9, 1.0])
        for load in (1, 2, 4, 8, 16)
    ]
    narrow = result_of(trial_of(load=32, k=2), pairs)
    alone = shown(sweep_of(narrow), 100)
    assert sum("slower" in line for line in alone) == 1
    assert not any("*" in line for line in alone)
    among = shown(sweep_of(*even, narrow), 100)
    (marked,) = [line for line in among if "cannot tell*" in line]
    assert marked.split()[3] == "32"
    assert any(line.startswith("* faster or slower by its own") for line in among)
    report = markdown_report(sweep_of(*even, narrow))
    assert "cannot tell (+" in report
    assert "pairs)* |" in report
    assert "\n\\* faster or slower by its own interval, but not among 6 cells" in report


def test_two_loads_are_no_ladder_to_speak_of(sweep: SweepResult) -> None:
    assert not any("Break-even load" in line for line in shown(sweep, 100))
    more = [
        result_of(trial_of(load=load, k=4), ratio) for load, ratio in [(1, 1.3), (4, 1.2), (8, 0.8)]
    ]
    lines = " ".join(shown(sweep_of(*more), 200))
    assert "Break-even load" in lines


def test_a_ladder_says_where_it_breaks_even_by_throughput_and_by_time_per_token() -> None:
    rungs = [
        result_of(trial_of(load=load, k=4), ratio) for load, ratio in [(1, 1.3), (4, 1.2), (8, 0.8)]
    ]
    lines = markdown_report(sweep_of(*rungs)).splitlines()
    told = [line for line in lines if line.startswith("- Break-even load of ")]
    assert sorted(line.split(" of ")[1].split(":")[0] for line in told) == [
        "speedup in throughput",
        "speedup per output token",
    ]
    assert all("between" in line or "wins below" in line for line in told)
