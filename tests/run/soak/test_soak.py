"""Soaks on simulated engines: hours in a second or two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from tests.run.soak.world import SoakWorld

pytestmark = pytest.mark.slow
HOUR: dict[str, Any] = {
    "duration": "1h",
    "load": {"concurrency": 2},
    "window": 40,
    "control": 240,
    "checkpoint": "20m",
    "raw_mb": 2,
}


def case(result: SuiteResult, begins: str) -> CaseResult:
    (found,) = [one for one in result.cases if one.case.startswith(begins)]
    return found


def findings(result: SuiteResult) -> set[str]:
    return {one.case for one in result.findings}


class TestFindings:
    def test_a_sound_hour(self, tmp_path: Path) -> None:
        soak = SoakWorld(tmp_path, HOUR)
        assert soak.run().status == "finished"
        result = soak.result()
        assert findings(result) == set() and result.complete and result.simulated
        assert "needed restarts: none seen within" in " ".join(result.notes)
        assert case(result, "restart").status is CaseStatus.PASS
        assert any("60 of 60 min" in text for text in soak.said)

    def test_a_leak_that_only_speculation_has_and_a_restart_cures(self, tmp_path: Path) -> None:
        drifts = {"leak_bytes_per_s": 2e6, "leak_when": "speculating"}
        soak = SoakWorld(tmp_path, HOUR, speculative={"drifts": drifts})
        soak.run()
        result = soak.result()
        assert findings(result) == {"growth: process_rss_bytes"}
        assert result.verdict.startswith("leaking")
        assert result.metrics["growth_per_hour/process_rss_bytes"] == pytest.approx(
            2e6 * 3600, rel=0.05
        )
        (needed,) = [note for note in result.notes if note.startswith("needed restarts")]
        assert "restart cures it" in needed
        assert "process_rss_bytes: does not cure" in case(result, "flush").seen

    def test_a_leak_only_where_speculation_is_off_is_met_by_bursts(self, tmp_path: Path) -> None:
        """The batch at which drafting ends lies between the load and its bursts."""
        drifts = {"leak_bytes_per_s": 8e7, "leak_when": "not_speculating"}
        off = [[1, 4, 3], [5, 16, 0]]
        steady = SoakWorld(tmp_path, HOUR, speculative={"drifts": drifts}, schedule=off)
        steady.run()
        assert findings(steady.result()) == set()
        soak = {**HOUR, "profile": "bursty", "bursts": {"factors": 5, "lasts": 60, "every": 200}}
        bursty = SoakWorld(tmp_path, soak, speculative={"drifts": drifts}, schedule=off)
        bursty.run()
        assert "growth: process_rss_bytes" in findings(bursty.result())

    def test_acceptance_that_decays_in_one_category(self, tmp_path: Path) -> None:
        drifts = {"acceptance_decay_by_category": {"code": 0.5}}
        soak = SoakWorld(tmp_path, HOUR, speculative={"drifts": drifts, "acceptance": 0.9})
        soak.run()
        result = soak.result()
        assert "trend: acceptance_length/code" in findings(result)
        assert "trend: acceptance_length/chat" not in findings(result)

    def test_stalls_by_the_clock(self, tmp_path: Path) -> None:
        faults = {"stall_at_s": 300, "stall_s": 8, "stall_every_s": 600}
        soak = SoakWorld(tmp_path, HOUR, speculative={"faults": faults})
        soak.run()
        stalls = case(soak.result(), "stalls")
        assert stalls.status is CaseStatus.FAIL
        assert "baseline: none" in stalls.seen and "one every" in stalls.seen


class TestEvents:
    def test_a_burst_is_watched_in_both_arms(self, tmp_path: Path) -> None:
        soak = {
            **HOUR,
            "duration": "20m",
            "profile": "bursty",
            "bursts": {"factors": [2, 5, 10], "lasts": 30, "every": 300},
        }
        world = SoakWorld(tmp_path, soak)
        world.run()
        bursts = [one for one in world.result().cases if one.case.startswith("burst")]
        assert [one.case.split()[1] for one in bursts] == ["x2", "x5", "x10", "x2"]
        assert {one.status for one in bursts} == {CaseStatus.PASS}
        assert bursts[2].evidence["baseline"]["overshoot"] > 2, "20 in flight where 16 have room"

    def test_faults_are_got_over_and_what_cannot_be_is_said(self, tmp_path: Path) -> None:
        faults = [
            {"kind": "worker_stopped", "at": 120, "lasts": 10},
            {"kind": "engine_killed", "at": 360},
            {"kind": "network_cut", "at": 600, "lasts": 10},
            {"kind": "disconnects", "at": 840, "clients": 30},
            {"kind": "cpu_hog", "at": 1080},
        ]
        world = SoakWorld(tmp_path, {**HOUR, "duration": "20m", "faults": faults})
        world.run()
        result = world.result()
        stopped, killed, cut, left, hog = (case(result, fault["kind"]) for fault in faults)
        for one in (stopped, killed, cut, left):
            assert one.status is CaseStatus.PASS, one.seen
            assert "4 of 4 before, 4 of 4 after" in one.seen
        assert killed.evidence["speculative"]["failed"] > 0
        assert "started again: baseline, speculative" in killed.seen
        assert cut.evidence["baseline"]["failed"] >= 10
        assert hog.status is CaseStatus.NOT_RUN and hog.seen.startswith("SKIPPED")
        assert any("cpu_hog SKIPPED" in text for text in world.said)
        lives = [row["life"] for row in world.record().extra["soak"]["windows"]]
        assert lives[0] == {"baseline": 0, "speculative": 0}
        assert lives[-1] == {"baseline": 2, "speculative": 2}, "killed, and the control"

    def test_an_engine_that_dies_of_itself_is_started_again_and_told(self, tmp_path: Path) -> None:
        faults = {"crash_at_s": 600, "first_life_only": True}
        world = SoakWorld(tmp_path, {**HOUR, "duration": "20m"}, speculative={"faults": faults})
        world.run()
        result = world.result()
        assert "the speculative engine died after" in " ".join(result.notes)
        assert result.complete


class TestInterrupted:
    def test_what_there_is_is_kept_and_the_same_soak_goes_on(self, tmp_path: Path) -> None:
        soak = SoakWorld(tmp_path, HOUR)

        def interrupt(text: str) -> None:
            if text.startswith("soak: 30"):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            soak.run(interrupt)
        first = soak.record()
        assert not first.complete and soak.folder.outcome() is not None
        assert not soak.folder.done()
        assert soak.result().complete is False
        windows = first.extra["soak"]["windows"]
        assert 40 < len(windows) < 50
        begun = first.extra["soak"]["next_index"]

        again = SoakWorld(tmp_path, HOUR)
        assert again.folder.path == soak.folder.path
        again.run()
        whole = again.record()
        assert whole.complete and again.folder.done()
        assert whole.extra["soak"]["windows"][: len(windows)] == windows
        assert whole.extra["soak"]["next_index"] > begun
        assert whole.extra["soak"]["sessions"] == 2
        assert "it was interrupted after 30" in " ".join(whole.notes)
        kept = [row["at_s"] for row in whole.extra["soak"]["windows"] if row["phase"] == "soak"]
        assert kept == sorted(kept) and kept[-1] < 3600

    def test_it_never_holds_more_than_its_windows(self, tmp_path: Path) -> None:
        """Two hours: as many windows as of one, and raw files within their space."""
        soak = SoakWorld(tmp_path, {**HOUR, "duration": "2h", "window": "2m", "raw_mb": 0.2})
        soak.run()
        record = soak.record()
        assert len(record.extra["soak"]["windows"]) < 80
        assert record.asked == ()
        raw = list((soak.folder.path / "raw").glob("*.parquet"))
        assert sum(file.stat().st_size for file in raw) <= 0.2e6 * 1.2
        assert (soak.folder.path / "raw" / "00001-A.parquet").exists()
        assert len(json.dumps(record.extra)) < 1e6
