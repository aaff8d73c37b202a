"""Profiles, windows and samples, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.records import CounterSnapshot, RequestError, RequestRecord, Sample
from orchestrator.run.soak.events import ROWS_MOST, Watched, watched_until
from orchestrator.run.soak.profile import Profile
from orchestrator.run.soak.sample import RawSample
from orchestrator.run.soak.window import WindowOfArm, counters_broken
from orchestrator.run.suites.soak import soak_settings
from orchestrator.spec.soak import Soak


def profile(**soak: object) -> Profile:
    return Profile(soak_settings(Soak.model_validate(soak), {}))


def request(number: int = 0, *, wait_s: float = 0.5, failed: bool = False) -> RequestRecord:
    """Sent at 0; 3 tokens in two chunks, a second apart."""
    return RequestRecord(
        request_id=f"r{number}",
        prompt_id="p",
        category="chat",
        turn=0,
        offset_s=None,
        sent_s=0.0,
        chunk_s=() if failed else (wait_s, wait_s + 1),
        chunk_tokens=None if failed else (1, 2),
        end_s=wait_s + 1,
        input_tokens=5,
        output_tokens=None if failed else 3,
        max_tokens=3,
        finish_reason=None,
        text="",
        error=RequestError.RESET if failed else None,
    )


class TestProfile:
    def test_constant(self) -> None:
        assert profile(load={"concurrency": 6}).at(12345).concurrency == 6
        assert profile().at(0).concurrency == 4
        assert profile(load={"rate_rps": 2.5}).at(0).rate_rps == 2.5

    def test_diurnal_from_trough_to_peak(self) -> None:
        day = profile(profile="diurnal", period="10h", trough=0.2, load={"rate_rps": 10.0})
        assert day.at(0).rate_rps == pytest.approx(2)
        assert day.at(5 * 3600).rate_rps == pytest.approx(10)
        assert day.at(2.5 * 3600).rate_rps == pytest.approx(6)

    def test_bursts_come_in_the_middle_of_their_interval_one_factor_after_the_other(self) -> None:
        bursty = profile(
            duration=1000,
            profile="bursty",
            load={"concurrency": 3},
            bursts={"factors": [2, 5], "lasts": 20, "every": 200},
        )
        seen = [bursty.at(t).concurrency for t in (0, 99, 100, 119, 120, 300, 500)]
        assert seen == [3, 3, 6, 6, 3, 15, 6]
        assert bursty.changes_after(50) == [100, 120, 300]
        burst = bursty.burst(110)
        assert burst is not None and (burst.began_s, burst.ended_s) == (100, 120) and burst.watched

    def test_of_very_many_bursts_some_are_watched(self) -> None:
        bursty = profile(
            duration="3d", profile="bursty", bursts={"lasts": 30, "every": 300, "factors": 2}
        )
        moments = [300 * i + 160 for i in range(864)]
        watched = sum((b := bursty.burst(at)) is not None and b.watched for at in moments)
        assert 20 <= watched <= 30


class TestWindow:
    def test_figures(self) -> None:
        window = WindowOfArm()
        window.add([request(), request(1, wait_s=1.5), request(2, failed=True)])
        before = CounterSnapshot(0, ("a",), drafts=0, draft_tokens=0, accepted_tokens=0,
                                 accepted_per_position=(0.0,), generation_tokens=100)  # fmt: skip
        after = replace(before, drafts=4, draft_tokens=8, accepted_tokens=2,
                        accepted_per_position=(2.0,), generation_tokens=107)  # fmt: skip
        samples = [Sample(0, {"process_rss_bytes": 5.0}), Sample(1, {"process_rss_bytes": 7.0})]
        found = window.figures(10, before, after, samples)
        assert (found["requests"], found["errors"], found["received_tokens"]) == (3, 1, 6)
        assert found["output_tok_per_s"] == pytest.approx(0.7), "by the server's own counter"
        assert found["ttft_p50_s"] == pytest.approx(0.5, rel=0.01)
        assert found["acceptance_rate"] == 0.25 and found["acceptance_at/1"] == 0.5
        assert found["acceptance_length/chat"] == 2, "two tokens in the chunk after the first"
        assert found["longest_gap_s"] == 1 and found["process_rss_bytes"] == 6

    def test_a_restart_in_between_leaves_the_counters_out(self) -> None:
        before = CounterSnapshot(0, ("a",), generation_tokens=100)
        after = CounterSnapshot(1, ("b",), generation_tokens=900)
        window = WindowOfArm()
        window.add([request()])
        found = window.figures(10, before, after, [])
        assert "counted_tokens" not in found and found["output_tok_per_s"] == pytest.approx(0.3)

    def test_nothing_seen_is_not_zero(self) -> None:
        found = WindowOfArm().figures(10, None, None, [Sample(0, {"process_rss_bytes": 0.0})])
        assert found == {"requests": 0, "errors": 0, "received_tokens": 0}

    @pytest.mark.parametrize(
        ("after", "broken"),
        [
            ({"drafts": 5, "draft_tokens": 10, "accepted_tokens": 7}, False),
            ({"drafts": 5, "draft_tokens": 10, "accepted_tokens": 12}, True),
            ({"drafts": 1, "draft_tokens": 1, "accepted_tokens": 1}, True),
            ({"accepted_tokens": 5000, "accepted_per_position": (100.0, 50.0)}, True),
        ],
        ids=["sound", "more accepted than drafted", "one went back", "positions do not add up"],
    )
    def test_counters_that_contradict_each_other(self, after: dict, broken: bool) -> None:  # type: ignore[type-arg]
        before = CounterSnapshot(0, ("a",), drafts=2, draft_tokens=2, accepted_tokens=0)
        assert counters_broken(before, CounterSnapshot(1, ("a",), **after)) is broken


def test_the_sample_keeps_failures_the_slowest_and_about_twenty_more() -> None:
    sample = RawSample()
    for number in range(1000):
        sample.add([request(number, wait_s=9.0 if number == 777 else 0.5, failed=number == 5)])
    kept = {record.request_id for record in sample.records()}
    assert {"r5", "r777"} <= kept and 20 <= len(kept) <= 50


def test_an_event_holds_no_more_than_its_rows_and_every_failure() -> None:
    watched = Watched("burst", "x2", 0, 10, 60, {"baseline": [], "speculative": []})
    for number in range(5 * ROWS_MOST):
        error = "reset" if number % 1000 == 7 else None
        watched.add("baseline", [[float(number), None, number + 1.0, None, error]])
    rows = watched.requests["baseline"]
    assert len(rows) <= ROWS_MOST + 1
    assert sum(row[4] is not None for row in rows) == 5 * ROWS_MOST // 1000
    assert rows == sorted(rows)


def test_an_event_is_watched_up_to_the_next_at_most() -> None:
    assert watched_until(100, 10, None, 1000) == 160
    assert watched_until(100, 60, None, 1000) == 460
    assert watched_until(100, 10, 130, 1000) == 129
    assert watched_until(100, 10, None, 120) == 120
