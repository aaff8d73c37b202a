"""Two runs of a sweep by hand: 100 s on 2 pairs, interrupted, and 50 s on 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.decide.efficiency import efficiency
from orchestrator.plan.trial import Trial
from orchestrator.ports import DeviceUse, Progress
from orchestrator.records import Outcome, RunUse
from orchestrator.report.efficiency_text import efficiency_metrics, efficiency_sentence
from orchestrator.report.language import Words
from orchestrator.run.use_log import UseLog
from orchestrator.store import SweepFolder
from tests.run.fakes import trial

FIRST = RunUse(0.0, 100.0, 2, 3, 80.0, 10.0, 60.0, 5.0, 4, 1, 90.0)
SECOND = RunUse(1.0, 50.0, 1, 1, 40.0, 2.0, 3.0, 0.0, 2, 0, 6.0)


def test_pair_seconds_count_every_pair_that_could_have_measured() -> None:
    found = efficiency([FIRST, SECOND])
    assert found is not None
    assert found.pair_seconds == 250.0
    assert found.fraction == pytest.approx(120 / 250)
    assert (found.starting_s, found.waiting_s, found.warmup_s) == (63.0, 5.0, 12.0)
    assert found.other_s == pytest.approx(250 - 120 - 12 - 63 - 5)
    assert (found.engine_starts, found.failed_starts) == (6, 1)


def test_nothing_known_is_nothing_said() -> None:
    assert efficiency([]) is None
    assert efficiency_sentence(None) == ""
    assert efficiency_metrics(None) == {}
    untimed = efficiency([RunUse(0.0)])
    assert untimed is not None
    assert untimed.fraction is None
    assert efficiency_sentence(untimed) == ""


def test_it_is_said_in_both_languages() -> None:
    found = efficiency([FIRST])
    assert efficiency_sentence(found).startswith("Efficiency: 40% of the time")
    assert efficiency_sentence(found, Words("zh")).startswith("效率：40%")
    assert efficiency_metrics(found)["efficiency"] == pytest.approx(0.4)


def ended(one: Trial, **seconds: float) -> Progress:
    return Progress("trial_ended", trial=one, outcome=Outcome(one.id, "finished", **seconds))


def test_a_run_is_written_after_every_trial_so_that_a_kill_loses_little(tmp_path: Path) -> None:
    folder, now = SweepFolder(tmp_path), [0.0]
    uses = UseLog(
        folder,
        lambda: DeviceUse(2, 5, 1, 33.0),
        now_unix=lambda: 1e9,
        monotonic=lambda: now[0],
    )
    seen: list[Progress] = []
    note = uses.watching(seen.append)
    uses.write()
    assert folder.runs() == ()  # nothing was run: nothing is said of a run that only reported
    now[0] = 20.0
    note(ended(trial(), waiting_s=9.0, starting_s=7.0, warmup_s=1.0, measured_s=8.0))
    (run,) = folder.runs()
    assert run == RunUse(1e9, 20.0, 2, 1, 8.0, 1.0, 7.0, 2.0, 5, 1, 33.0)
    now[0] = 30.0
    note(ended(trial(k=2), measured_s=4.0))
    (run,) = folder.runs()
    assert (run.trials, run.measured_s, run.wall_s) == (2, 12.0, 30.0)
    assert len(seen) == 2


def test_without_devices_of_ours_nothing_is_written(tmp_path: Path) -> None:
    uses = UseLog(SweepFolder(tmp_path), None)
    uses.watching(lambda _: None)(ended(trial(), measured_s=4.0))
    assert SweepFolder(tmp_path).runs() == ()
