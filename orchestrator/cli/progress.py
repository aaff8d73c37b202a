"""What a person sees while a sweep runs: what, how far, how long still. One line an event."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from orchestrator.plan.plan import Plan
from orchestrator.ports import Progress
from orchestrator.records import Outcome


class _Starts:
    """Engine starts so far, and what those still to come will take. Overlapping ones count once."""

    def __init__(self, planned: int) -> None:
        self._planned = planned
        self._done = self._running = 0
        self.spent_s = self._since = 0.0

    def began(self, now_s: float) -> None:
        if not self._running:
            self._since = now_s
        self._running += 1

    def ended(self, now_s: float) -> None:
        if not self._running:
            return  # attached servers are ready without having been started
        self._running -= 1
        self._done += 1
        if not self._running:
            self.spent_s += now_s - self._since

    @property
    def to_come_s(self) -> float:
        if not self._done:
            return 0.0
        return max(0, self._planned - self._done) * self.spent_s / self._done


class SweepProgress:
    """Implements ports.OnProgress. On a terminal the pairs of a trial rewrite one line."""

    def __init__(
        self,
        *,
        total: int,
        done: int,
        suites: int = 0,
        engine_starts: int = 0,
        out: TextIO | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._done = total, done
        self._out = out or sys.stdout
        self._now = monotonic
        self._began = monotonic()
        self._ended_here = 0
        self._starts = _Starts(engine_starts)
        self._live = self._out.isatty()
        self._open_line = False
        self._already = done
        self._suites = suites

    def opening(self, plan: Plan, folder: Path) -> None:
        """Say what will happen before anything is started."""
        if self._suites:
            self._line(f"{plan.name}: {self._suites} suites to run{_after(self._total)}.")
        if self._total == 0:
            return
        if self._done == self._total:
            self._line(f"{plan.name}: all {self._total} trials are in {_short(folder)}; reporting.")
            return
        least, most = plan.estimate.least_s / 60, plan.estimate.most_s / 60
        kept = f", {self._done} done before" if self._done else ""
        takes = f"about {least:.0f} to {most:.0f} minutes in all"
        if plan.simulated:
            takes = "SIMULATED engines on virtual time"
        self._line(
            f"{plan.name}: {self._total} trials{kept}, {plan.engine_starts} engine starts, "
            f"{takes}. Ctrl-C stops cleanly; the same command goes on."
        )
        for notice in plan.warnings:
            self._line(f"  warning: {notice}")

    def __call__(self, event: Progress) -> None:
        show = {
            "engine_starting": lambda: self._starting(event),
            "engine_ready": lambda: self._start_ended(f"  ready: {event.text}"),
            "engine_failed": lambda: self._start_ended(f"  did not start: {event.text}"),
            "trial_started": lambda: self._started(event),
            "pair": lambda: self._pair(event),
            "trial_ended": lambda: self._ended(event),
            "trial_reused": lambda: self._reused(event),
            "tracking_unavailable": lambda: self._line(f"  warning: {event.text}"),
            "suite_started": lambda: self._line(f"suite {event.text}", close=False),
            "suite_said": lambda: self._suite_said(event),
            "suite_ended": lambda: self._rewrite(
                f"suite {event.text}  {_suite_end(event.outcome)}", close=True
            ),
            "refining": lambda: self._line(f"closing in: {event.text}"),
            "confirming": lambda: self._line(f"measuring {event.text}"),
        }.get(event.kind)
        if show is not None:
            show()

    def interrupted(self, experiment: Path) -> None:
        after = f" after {self._done} of {self._total} trials" if self._total else ""
        self._line(
            f"interrupted{after}; stopping the engines. "
            f"To go on: python -m orchestrator sweep {experiment}"
        )

    def _starting(self, event: Progress) -> None:
        self._starts.began(self._now())
        self._line(f"  starting {event.text} …")

    def _start_ended(self, text: str) -> None:
        self._starts.ended(self._now())
        self._line(text)

    def _started(self, event: Progress) -> None:
        assert event.trial is not None
        self._total = max(self._total, self._done + 1)  # refinements and confirmations come on top
        self._line(f"[{self._done + 1}/{self._total}] {event.trial.label()}", close=False)

    def _suite_said(self, event: Progress) -> None:
        """Case by case, on a terminal only: a hundred lines tell a log nothing."""
        if self._live:
            self._rewrite(f"suite {event.text}")

    def _pair(self, event: Progress) -> None:
        assert event.trial is not None
        assert event.report is not None
        if not self._live:
            return
        report = event.report
        metric = event.trial.protocol.metric
        speedup = report.metrics.get(metric)
        shown = "" if speedup is None else f"  {speedup:.2f}x"
        low, high = report.metrics.get(f"{metric}_low"), report.metrics.get(f"{metric}_high")
        if low is not None and high is not None:
            shown += f" [{low:.2f}, {high:.2f}]"
        self._rewrite(
            f"[{self._done + 1}/{self._total}] {event.trial.label()}  "
            f"pair {report.pairs_done}/{report.pairs_max}{shown}{self._left()}"
        )

    def _ended(self, event: Progress) -> None:
        assert event.trial is not None
        self._done += 1
        self._ended_here += 1
        text = f"[{self._done}/{self._total}] {event.trial.label()}  {_end(event.outcome)}"
        self._rewrite(text + self._left(), close=True)

    def _reused(self, event: Progress) -> None:
        assert event.trial is not None
        self._done += 1
        self._line(
            f"[{self._done}/{self._total}] {event.trial.label()}  measured before by sweep "
            f"{event.text}, in the same environment"
        )

    def _left(self) -> str:
        """Remaining time, from the trials that ended and the engines that started in this run."""
        remaining = self._total - self._done
        if not self._ended_here or not remaining:
            return ""
        per_trial = (self._now() - self._began - self._starts.spent_s) / self._ended_here
        minutes = (remaining * per_trial + self._starts.to_come_s) / 60
        return f"  ~{minutes:.0f} min left" if minutes >= 1.5 else f"  ~{minutes * 60:.0f} s left"

    def _line(self, text: str, *, close: bool = True) -> None:
        if self._open_line:
            self._out.write("\n")
        self._out.write(text + ("\n" if close or not self._live else ""))
        self._open_line = not close and self._live
        self._out.flush()

    def _rewrite(self, text: str, *, close: bool = False) -> None:
        if self._live:
            self._out.write("\r\033[2K" if self._open_line else "")
        self._out.write(text + ("\n" if close or not self._live else ""))
        self._open_line = self._live and not close
        self._out.flush()


def _after(trials: int) -> str:
    return ", after the trials" if trials else ""


def _suite_end(outcome: Outcome | None) -> str:
    if outcome is None or outcome.status == "finished":
        return "ended" if outcome is None else f"ended after {outcome.wall_s:.0f} s"
    return f"FAILED {outcome.failure}: {outcome.cause}"


def _end(outcome: Outcome | None) -> str:
    if outcome is None:
        return "ended without an outcome"
    if outcome.status == "failed":
        return f"FAILED {outcome.failure}: {outcome.cause}"
    if outcome.status == "stopped":
        return str(outcome.cause)
    return f"{outcome.pairs_valid} valid pairs of {outcome.pairs_measured}"


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
