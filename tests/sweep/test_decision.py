"""What a sweep ends in: a decision, a file to serve, and a comparison with another sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from orchestrator.cli import main
from orchestrator.decide.schedule import schedule_of, verified
from orchestrator.report.decision_file import DECISION_FILE, DEPLOY_FILE
from tests.sweep.world import EXPERIMENT, Events, run_story, write_experiment

SCHEDULED = (
    EXPERIMENT.format(
        name="scheduled",
        simulated="{profile: fast, acceptance: 0.8, target_token_s: 0.0003}",
        lengths="[2]",
        more="",
    )
    .replace("batch_size: [1, 4]", "batch_size: [1, 8]")
    .replace("output_tokens: 24", "output_tokens: 96")
    .replace("min: 3, max: 5", "min: 5, max: 5")
)


pytestmark = pytest.mark.slow


def test_a_schedule_is_run_before_it_is_deployed(tmp_path: Path) -> None:
    file = tmp_path / "scheduled.yaml"
    file.write_text(SCHEDULED)
    finished = run_story(file, tmp_path / "r")
    result, schedule = finished.result, schedule_of(finished.result)
    assert schedule is not None
    assert schedule.ranges == ((1, 1, 2), (2, 8, 0))
    assert verified(result, schedule) is True
    assert len(result.confirmations) == 3  # the best cell again; the schedule at 1 and at 8
    folder = finished.report.page.parent
    plain = json.loads((folder / DECISION_FILE).read_text())
    assert plain["schedule"]["verified"] is True
    config = plain["configuration"]["speculative_config"]
    assert config["num_speculative_tokens_per_batch_size"] == [[1, 1, 2], [2, 8, 0]]
    served = yaml.safe_load((folder / DEPLOY_FILE).read_text())["applications"][0]["args"]
    option = served["speculation"]["num_speculative_tokens_per_batch_size"]
    assert option == [[1, 1, 2], [2, 8, 0]]
    events = Events()
    again = run_story(file, tmp_path / "r", on_progress=events)
    assert "trial_ended" not in events.kinds()  # nothing is measured twice
    assert {t.trial.id for t in again.result.confirmations} == {
        t.trial.id for t in result.confirmations
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sweeps of one grid: `before`, the same `again`, `worse` with less acceptance."""
    folder = tmp_path_factory.mktemp("compare")
    for name, acceptance in (("before", 0.8), ("again", 0.8), ("worse", 0.2)):
        file = write_experiment(
            folder,
            name=name,
            simulated=f"{{profile: fast, acceptance: {acceptance}}}",
            lengths="[2]",
        )
        run_story(file, folder / "r")
    return folder / "r"


def test_a_planted_regression_ends_with_status_1(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--html", str(tmp_path / "c.html"), "--markdown", str(tmp_path / "c.md")]
    assert main(["compare", "before", "worse", "--results", str(results), *files]) == 1
    out = capsys.readouterr().out
    assert out.index("engine_argument.simulated.acceptance") < out.index("speedup_throughput")
    assert "regressions" in out
    assert "SIMULATED" in out
    assert "regression" in (tmp_path / "c.html").read_text()
    assert "| engine_argument.simulated.acceptance | 0.8 | 0.2 |" in (tmp_path / "c.md").read_text()


def test_the_same_again_ends_with_status_0(results: Path) -> None:
    assert main(["compare", "before", "again", "--results", str(results)]) == 0


def test_a_sweep_against_a_stored_decision(results: Path) -> None:
    decision = str(results / "before" / DECISION_FILE)
    assert main(["compare", decision, "again", "--results", str(results)]) == 0
    assert main(["compare", decision, "worse", "--results", str(results)]) == 1


def test_nothing_in_common_ends_with_status_5(results: Path, tmp_path: Path) -> None:
    other = write_experiment(
        tmp_path, name="other", simulated="{profile: fast, acceptance: 0.8}", lengths="[3]"
    )
    run_story(other, results)
    assert main(["compare", "before", "other", "--results", str(results)]) == 5


def test_a_margin_that_is_none_is_refused(results: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "before", "again", "--results", str(results), "--margin", "3"])
    assert ended.value.code == 2
