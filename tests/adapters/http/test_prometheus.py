"""A server's counters, from pages as vLLM, SGLang and llama.cpp write them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.adapters.http.prometheus import PrometheusProbe, add_replicas, read_page
from orchestrator.ports import Endpoint
from orchestrator.records import CounterSnapshot

PAGES = Path(__file__).parents[2] / "data" / "metrics"


def page(name: str) -> str:
    return (PAGES / f"{name}.txt").read_text()


def test_vllm_is_summed_over_engines_and_finish_reasons() -> None:
    assert read_page(page("vllm_two_engines"), at_unix_s=5.0) == CounterSnapshot(
        at_unix_s=5.0,
        replica_ids=("1760000000.000",),
        drafts=120,
        draft_tokens=360,
        accepted_tokens=180,
        accepted_per_position=(95, 60, 25),  # 95 + 60 + 25 = 180
        prompt_tokens=1500,
        generation_tokens=500,
        requests_finished=12,
        preemptions=1,
        prefix_cache_queries=150,
        prefix_cache_hits=15,
        kv_cache_usage=0.5,
        running_requests=4,
        waiting_requests=2,
    )


def test_what_a_baseline_does_not_expose_is_none_and_zero_stays_zero() -> None:
    snapshot = read_page(page("vllm_baseline"), at_unix_s=0.0)
    assert snapshot is not None
    assert snapshot.drafts is snapshot.accepted_tokens is snapshot.accepted_per_position is None
    assert snapshot.prompt_tokens == 0.0
    assert snapshot.kv_cache_usage is None  # NaN on the page
    assert snapshot.generation_tokens is None  # its line is broken
    assert snapshot.replica_ids == ("1760000123.400",)


def test_sglang_has_verifications_but_no_acceptance_counters() -> None:
    snapshot = read_page(page("sglang"), at_unix_s=0.0)
    assert snapshot is not None
    assert snapshot.drafts == 3000
    assert snapshot.draft_tokens is snapshot.accepted_tokens is None
    assert (snapshot.acceptance_length_gauge, snapshot.acceptance_rate_gauge) == (2.5, 0.5)
    assert (snapshot.prompt_tokens, snapshot.generation_tokens) == (8128, 7557)
    assert (snapshot.running_requests, snapshot.waiting_requests) == (4, 9)
    assert snapshot.prefix_cache_hits == 42
    assert snapshot.replica_ids == ()


def test_llamacpp_has_the_counters_of_vllm() -> None:
    snapshot = read_page(page("llamacpp"), at_unix_s=0.0)
    assert snapshot is not None
    assert (snapshot.drafts, snapshot.draft_tokens, snapshot.accepted_tokens) == (1000, 3000, 1500)
    assert snapshot.accepted_per_position == (800, 700)
    assert (snapshot.prompt_tokens, snapshot.generation_tokens) == (6886, 3469)


def test_a_page_of_something_else_is_nothing() -> None:
    assert read_page("# TYPE go_goroutines gauge\ngo_goroutines 7\n", at_unix_s=0.0) is None
    assert read_page("<html>not found</html>", at_unix_s=0.0) is None
    assert read_page("", at_unix_s=0.0) is None


def test_a_gap_in_the_positions_makes_them_unknown() -> None:
    text = (
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 3\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="2"} 1\n'
    )
    snapshot = read_page(text, at_unix_s=0.0)
    assert snapshot is not None and snapshot.accepted_per_position is None


def test_replicas_are_added_and_what_one_lacks_is_unknown() -> None:
    one = read_page(page("vllm_two_engines"), at_unix_s=5.0)
    assert one is not None
    two = replace(one, at_unix_s=4.0, replica_ids=("1",), drafts=80.0, kv_cache_usage=0.1)
    both = add_replicas([one, replace(two, preemptions=None)])
    assert both is not None
    assert both.at_unix_s == 4.0
    assert both.replica_ids == ("1", "1760000000.000")
    assert both.drafts == 200
    assert both.accepted_per_position == (190, 120, 50)
    assert both.kv_cache_usage == pytest.approx(0.3)
    assert both.preemptions is None
    assert add_replicas([]) is None
    different_k = add_replicas([one, replace(one, accepted_per_position=(1.0,))])
    assert different_k is not None and different_k.accepted_per_position is None


@contextmanager
def serving(status: int, body: bytes) -> Iterator[tuple[str, list[str | None]]]:
    seen: list[str | None] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers.get('authorization')}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/baseline", seen
        finally:
            server.shutdown()
            thread.join()


def test_the_page_is_asked_for_below_the_base_url_with_its_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving(200, page("llamacpp").encode()) as (url, seen):
        snapshot = PrometheusProbe().read(Endpoint("a", url, "m", {"Authorization": "Bearer x"}))
    assert snapshot is not None and snapshot.drafts == 1000
    assert seen == ["/baseline/metrics Bearer x"]
    assert snapshot.at_unix_s > 1e9


def test_no_page_is_no_snapshot() -> None:
    with serving(404, b"") as (url, _):
        assert PrometheusProbe().read(Endpoint("a", url, "m")) is None
    # Nobody listens there any more.
    assert PrometheusProbe(timeout_s=0.5).read(Endpoint("a", url, "m")) is None
