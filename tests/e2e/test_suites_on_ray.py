"""`sweep --suites` by its command, over Ray and Serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.adapters.mlflow import MlflowTracker, local_tracking_uri
from orchestrator.run.suites.record import CaseStatus
from orchestrator.store import SweepFolder
from tests.e2e.test_suites import LIMIT_S, cases, findings, result_of
from tests.survival import room


@pytest.mark.ray
@pytest.mark.slow
def test_on_ray_everything_is_kept_tracked_and_told_and_nothing_is_left(tmp_path: Path) -> None:
    """Pool, Serve and replicas are the product's own; the engine in them is a stand-in."""
    file = room.write_experiment(tmp_path, "suites", {2: ""})
    results = tmp_path / "results"
    running = room.start(file, results, "--suites", "functional")
    said, _ = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, said
    assert room.with_open_files_under(results) == []

    result = result_of(results, "suites")
    assert result.every == ()
    (suite,) = result.suite_runs
    assert findings(suite) == {}
    assert cases(suite)["greedy"] is CaseStatus.PASS
    assert [name for name, _ in suite.engines] == ["simulated"]
    own = SweepFolder(results / "suites").suite(suite.job.id)
    record = own.record()
    assert record is not None and record.complete
    subjects = ["baseline", "speculative", "baseline_again"]
    assert list(dict.fromkeys(asked.subject for asked in record.asked)) == subjects
    assert all(state.healthy for state in record.health)
    assert (own.path / "result.json").exists()

    report = (results / "suites" / "report.md").read_text()
    assert "## Suite: functional" in report and "| greedy | pass |" in report
    assert "functional · ngram K=2" in said

    tracker = MlflowTracker(local_tracking_uri(results), experiment="suites", results=results)
    runs = tracker._client.search_runs([tracker._experiment_id], "tags.kind = 'suite'")
    (run,) = runs
    assert run.info.status == "FINISHED"
    assert (run.data.tags["suite"], run.data.tags["ok"]) == ("functional", "true")
    assert run.data.metrics["findings"] == 0
    listed = tracker._client.list_artifacts(run.info.run_id, "suite")
    assert {"suite/asked.parquet", "suite/record.json", "suite/result.json"} <= {
        item.path for item in listed
    }
