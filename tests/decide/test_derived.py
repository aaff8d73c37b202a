"""What is kept beside the records holds only while they, and the code, are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.decide import derived
from orchestrator.decide.derived import trial_result
from orchestrator.decide.trial_result import TrialResult, read_trial
from orchestrator.measure.slo import SloBounds
from orchestrator.plan.trial import Trial
from orchestrator.store import SweepFolder, TrialFolder
from tests.sweep.world import run_story, write_experiment


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    folder = tmp_path_factory.mktemp("derived")
    run_story(write_experiment(folder, lengths="[2]"), folder / "r")
    return SweepFolder(folder / "r" / "story")


@pytest.fixture
def one(sweep: SweepFolder) -> tuple[Trial, TrialFolder]:
    trial = next(trial for trial in sweep.trials() if trial.kind == "comparison")
    return trial, sweep.trial(trial.id)


@pytest.fixture
def derivations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for every time the records were read."""
    seen: list[str] = []

    def counting(trial: Trial, folder: TrialFolder, slo: SloBounds | None = None) -> TrialResult:
        seen.append(trial.id)
        return read_trial(trial, folder, slo)

    monkeypatch.setattr(derived, "read_trial", counting)
    return seen


def test_what_is_kept_is_exactly_what_the_records_say(sweep: SweepFolder) -> None:
    for trial in sweep.trials():
        folder = sweep.trial(trial.id)
        trial_result(trial, folder)
        assert trial_result(trial, folder) == read_trial(trial, folder)


def test_records_are_read_once(one: tuple[Trial, TrialFolder], derivations: list[str]) -> None:
    (one[1].path / "derived.json").unlink(missing_ok=True)
    trial_result(*one)
    trial_result(*one)
    assert len(derivations) == 1


def test_a_record_that_changed_is_read_again(
    one: tuple[Trial, TrialFolder], derivations: list[str]
) -> None:
    trial, folder = one
    before = trial_result(trial, folder)
    path = next(folder.blocks_path.glob("000-A.json"))
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "duration_s": facts["duration_s"] * 2}))
    derivations.clear()
    after = trial_result(trial, folder)
    assert derivations == [trial.id]
    assert after.pairs[0].baseline.duration_s == 2 * before.pairs[0].baseline.duration_s


def test_other_code_and_other_bounds_derive_anew(
    one: tuple[Trial, TrialFolder], derivations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial_result(*one)
    derivations.clear()
    trial_result(*one, SloBounds(ttft_s=1.0))
    monkeypatch.setattr(derived, "code_hash", lambda: "another version")
    trial_result(*one)
    assert len(derivations) == 2


@pytest.mark.parametrize("text", ["", "garbage", "KEY\nnot json", 'KEY\n{"trial": 1}'])
def test_a_damaged_one_is_made_again(
    one: tuple[Trial, TrialFolder], derivations: list[str], text: str
) -> None:
    trial, folder = one
    trial_result(trial, folder)
    path = folder.path / "derived.json"
    path.write_text(text.replace("KEY", path.read_text().partition("\n")[0]))
    derivations.clear()
    assert trial_result(trial, folder) == read_trial(trial, folder)
    assert derivations == [trial.id]
    trial_result(trial, folder)
    assert len(derivations) == 1


def test_a_trial_that_has_not_ended_keeps_nothing(
    one: tuple[Trial, TrialFolder], derivations: list[str], tmp_path: Path
) -> None:
    fresh = TrialFolder(tmp_path / one[0].id)
    fresh.begin(one[0])
    assert trial_result(one[0], fresh).pairs == ()
    assert not (fresh.path / "derived.json").exists()
