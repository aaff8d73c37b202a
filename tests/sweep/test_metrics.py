"""A sweep as Prometheus sees it while it runs."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.adapters.sweep_metrics import SweepMetrics
from orchestrator.cli import main
from orchestrator.ports import Progress
from orchestrator.sweep import run_sweep
from tests.sweep.world import Events, sweep_of, write_experiment

Samples = dict[str, list[tuple[dict[str, str], float]]]


def scrape(port: int) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        text = page.read().decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def test_trials_pairs_acceptance_and_speedup_are_there_while_it_runs(tmp_path: Path) -> None:
    events = Events()
    file = write_experiment(tmp_path)
    seen: list[Samples] = []

    def progress(event: Progress) -> None:
        events(event)
        if event.kind == "pair":
            seen.append(scrape(port))

    with SweepMetrics("s", planned=2, done=0, simulated=True, on_progress=progress) as metrics:
        port = metrics.serve(0)
        sweep, _ = sweep_of(file, tmp_path / "r", on_progress=metrics)
        run_sweep(sweep)
        last = scrape(port)
    assert seen and seen[0]["orchestrator_trials_running"][0][1] == 1
    labels, ended = next(s for s in last["orchestrator_trials_ended_total"] if s[1])
    assert labels == {"sweep": "s", "simulated": "true", "status": "finished"}
    assert ended == events.kinds().count("trial_ended")
    assert last["orchestrator_pairs_total"][0][1] == len(seen)
    speculative = [
        (labels, value)
        for labels, value in last["orchestrator_trial_acceptance_rate"]
        if labels["kind"] == "comparison"
    ]
    assert speculative and all(0 < value < 1 for _, value in speculative)
    assert speculative[0][0]["method"] == "ngram" and speculative[0][0]["workload"]
    bounds = {labels["bound"] for labels, _ in last["orchestrator_trial_speedup"]}
    assert bounds == {"estimate", "low", "high"}
    assert last["orchestrator_trials_running"][0][1] == 0


def test_the_page_is_gone_with_the_sweep_and_was_on_loopback_only(tmp_path: Path) -> None:
    metrics = SweepMetrics("s", planned=1, done=0, simulated=True, on_progress=lambda event: None)
    port = metrics.serve(0)
    assert scrape(port)["orchestrator_trials_planned"] == [
        ({"sweep": "s", "simulated": "true"}, 1.0)
    ]
    metrics.close()
    with pytest.raises(OSError, match="refused"):
        scrape(port)


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_experiment(tmp_path)
    status = main(["sweep", str(file), "--results", str(tmp_path / "r"), "--metrics-port", "0"])
    assert status == 0
    assert "metrics: http://127.0.0.1:" in capsys.readouterr().out


def test_a_port_that_cannot_be_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_experiment(tmp_path)
    arguments = ["sweep", str(file), "--results", str(tmp_path / "r"), "--metrics-port", "99999"]
    assert main(arguments) == 2
    assert "--metrics-port" in capsys.readouterr().err


@pytest.mark.slow
def test_the_suites_of_odd_input_isolation_and_observability_in_a_sweep(tmp_path: Path) -> None:
    file = write_experiment(tmp_path, lengths="[4]")
    names = "boundary,isolation,observability"
    assert main(["sweep", str(file), "--results", str(tmp_path / "r"), "--suites", names]) == 0
    (report,) = (tmp_path / "r").glob("*/report.md")
    text = report.read_text(encoding="utf-8")
    for name in names.split(","):
        assert f"## Suite: {name}" in text
    assert "no findings in" in text and "no leak found" in text and "to be seen" in text
