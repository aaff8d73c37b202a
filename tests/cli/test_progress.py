"""Lines of a sweep's progress, on a terminal and in a file."""

from __future__ import annotations

import io
from pathlib import Path

from orchestrator.cli.progress import SweepProgress
from orchestrator.ports import PairReport, Progress
from orchestrator.records import FailureClass, Outcome
from tests.run.fakes import FakeClock, trial


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class SetClock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def events(progress: SweepProgress, outcome: Outcome) -> None:
    one = trial()
    progress(Progress("engine_starting", text="ngram K=4"))
    progress(Progress("engine_ready", text="ngram K=4 after 9 s"))
    progress(Progress("trial_started", trial=one))
    metrics = {
        "speedup_throughput": 1.214,
        "speedup_throughput_low": 1.05,
        "speedup_throughput_high": 1.391,
    }
    progress(Progress("pair", trial=one, report=PairReport(one.id, 3, 8, metrics)))
    progress(Progress("trial_ended", trial=one, outcome=outcome))


def test_in_a_file_every_event_is_a_line_and_pairs_are_left_out() -> None:
    out = io.StringIO()
    events(
        SweepProgress(total=2, done=0, out=out, monotonic=FakeClock()),
        Outcome("t", "finished", pairs_measured=5, pairs_valid=4),
    )
    assert out.getvalue().splitlines() == [
        "  starting ngram K=4 …",
        "  ready: ngram K=4 after 9 s",
        "[1/2] ngram K=4 · chat · batch 1 · T=0",
        "[1/2] ngram K=4 · chat · batch 1 · T=0  4 valid pairs of 5  ~2 s left",
    ]


def test_on_a_terminal_a_pair_rewrites_the_trials_line() -> None:
    out = Terminal()
    events(
        SweepProgress(total=1, done=0, out=out, monotonic=FakeClock()),
        Outcome("t", "finished", pairs_measured=5, pairs_valid=5),
    )
    shown = out.getvalue()
    assert "\r\033[2K[1/1] ngram K=4 · chat · batch 1 · T=0  pair 3/8  1.21x [1.05, 1.39]" in shown
    assert shown.endswith("5 valid pairs of 5\n")


def test_the_time_left_counts_engine_starts_for_themselves() -> None:
    clock, out = SetClock(), io.StringIO()
    progress = SweepProgress(total=4, done=0, engine_starts=3, out=out, monotonic=clock)
    for name, after_s in (("baseline", 0.0), ("ngram K=2", 5.0)):
        clock.now_s += after_s
        progress(Progress("engine_starting", text=name))
    for after_s in (10.0, 25.0):  # both are up 40 s after the first began
        clock.now_s += after_s
        progress(Progress("engine_ready", text="one"))
    one = trial()
    progress(Progress("trial_started", trial=one))
    clock.now_s += 10.0
    progress(Progress("trial_ended", trial=one, outcome=Outcome("t", "finished")))
    # Three trials of 10 s and the third engine, at 20 s each of the first two.
    assert out.getvalue().splitlines()[-1].endswith("~50 s left")


def test_a_failure_says_its_class_and_cause() -> None:
    out = io.StringIO()
    events(
        SweepProgress(total=1, done=0, out=out, monotonic=FakeClock()),
        Outcome("t", "failed", FailureClass.CRASHED, "the speculative engine died in block 3"),
    )
    assert "FAILED crashed: the speculative engine died in block 3" in out.getvalue()


def test_an_interruption_says_how_to_go_on() -> None:
    out = io.StringIO()
    SweepProgress(total=4, done=1, out=out).interrupted(Path("x.yaml"))
    assert "after 1 of 4 trials" in out.getvalue()
    assert "python -m orchestrator sweep x.yaml" in out.getvalue()
