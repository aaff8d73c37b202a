"""What an operator needs to see of a server that speculates, and how to get what is not there.

Names: vLLM 0.32 (`vllm/v1/metrics/loggers.py`, `vllm/v1/spec_decode/metrics.py`), SGLang
(`python/sglang/srt/observability/metrics_collector.py`), llama.cpp's server
(`tools/server/README.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Moves = Literal["grows", "while busy", "stands"]
"""Under load: a counter or a histogram's count grows, a gauge differs from its value at rest at
some time, or the value need not change."""


@dataclass(frozen=True)
class Signal:
    """One thing to see."""

    name: str
    exposed_as: tuple[str, ...]
    """Sample names, by server."""
    kind: Literal["counter", "gauge", "histogram"]
    moves: Moves
    obtain: str
    """How to get it where it is missing."""
    labels: tuple[str, ...] = ()
    """Labels it should be broken down by."""
    speculative_only: bool = False
    after_faults: bool = False
    """It moves when requests are refused and aborted, not under sound load."""
    where: tuple[tuple[str, str], ...] = ()
    """Only samples with these labels count."""


_CLIENT = "from the client's side: `sweep` measures it for both arms"
_STATS = "do not set `disable_log_stats`; otherwise a newer server"

SIGNALS: tuple[Signal, ...] = (
    Signal("requests running", ("vllm:num_requests_running", "sglang:num_running_reqs",
           "llamacpp:requests_processing"), "gauge", "while busy", _STATS),
    Signal("requests waiting", ("vllm:num_requests_waiting", "sglang:num_queue_reqs",
           "llamacpp:requests_deferred"), "gauge", "stands", _STATS),
    Signal("use of the KV cache", ("vllm:kv_cache_usage_perc", "sglang:token_usage",
           "llamacpp:kv_cache_usage_ratio"), "gauge", "while busy", _STATS),
    Signal("size of the KV cache", ("vllm:cache_config_info", "sglang:max_total_num_tokens"),
           "gauge", "stands", "the engine's log at its start"),
    Signal("prompt tokens", ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total",
           "llamacpp:prompt_tokens_total"), "counter", "grows", _STATS),
    Signal("output tokens", ("vllm:generation_tokens_total", "sglang:generation_tokens_total",
           "llamacpp:tokens_predicted_total"), "counter", "grows", _STATS),
    Signal("requests finished, by reason", ("vllm:request_success_total",
           "sglang:num_requests_total"), "counter", "grows",
           "from the gateway's access log", labels=("finished_reason",)),
    Signal("requests aborted", ("vllm:request_success_total",), "counter", "grows",
           "from the gateway: connections that clients closed",
           after_faults=True, where=(("finished_reason", "abort"),)),
    Signal("requests refused", ("http_requests_total",), "counter", "grows",
           "vLLM's own server counts them where `prometheus-fastapi-instrumentator` is installed; "
           "else from the gateway (`ray_serve_num_http_error_requests_total`)",
           after_faults=True, where=(("status", "4xx"),)),
    Signal("time to first token", ("vllm:time_to_first_token_seconds_count",
           "sglang:time_to_first_token_seconds_count"), "histogram", "grows", _CLIENT),
    Signal("time between tokens", ("vllm:inter_token_latency_seconds_count",
           "sglang:inter_token_latency_seconds_count"), "histogram", "grows", _CLIENT),
    Signal("end-to-end time", ("vllm:e2e_request_latency_seconds_count",
           "sglang:e2e_request_latency_seconds_count"), "histogram", "grows", _CLIENT),
    Signal("time in the queue", ("vllm:request_queue_time_seconds_count",
           "sglang:queue_time_seconds_count"), "histogram", "grows", "a trace of the request"),
    Signal("time in prefill", ("vllm:request_prefill_time_seconds_count",), "histogram", "grows",
           "a trace of the request"),
    Signal("time in decoding", ("vllm:request_decode_time_seconds_count",), "histogram", "grows",
           "a trace of the request"),
    Signal("preemptions", ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
           "counter", "stands", _STATS),
    Signal("prefix cache: asked", ("vllm:prefix_cache_queries_total",), "counter", "grows",
           "`enable_prefix_caching`, and a server that counts it"),
    Signal("prefix cache: hit", ("vllm:prefix_cache_hits_total", "sglang:cached_tokens_total"),
           "counter", "stands", "`enable_prefix_caching`, and a server that counts it"),
    Signal("drafts", ("vllm:spec_decode_num_drafts_total", "sglang:spec_verify_calls_total",
           "llamacpp:spec_decode_num_drafts_total"), "counter", "grows", _STATS,
           speculative_only=True),
    Signal("drafted tokens", ("vllm:spec_decode_num_draft_tokens_total",
           "llamacpp:spec_decode_num_draft_tokens_total"), "counter", "grows",
           "drafts × speculation length, where the length is fixed", speculative_only=True),
    Signal("accepted tokens", ("vllm:spec_decode_num_accepted_tokens_total",
           "llamacpp:spec_decode_num_accepted_tokens_total"), "counter", "grows",
           "SGLang: only the gauge `sglang:spec_accept_length` of its last interval",
           speculative_only=True),
    Signal("accepted tokens, by position", ("vllm:spec_decode_num_accepted_tokens_per_pos_total",
           "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"), "counter", "grows",
           "`sweep` with several speculation lengths", labels=("position",),
           speculative_only=True),
    Signal("time in drafting and verifying", ("vllm:spec_decode_draft_time_seconds_count",),
           "histogram", "grows",
           "no server exposes it; an experiment with several speculation lengths gives it by "
           "regression", speculative_only=True),
    Signal("method and speculation length", ("vllm:spec_decode_config_info",), "gauge", "stands",
           "not exposed: label the scrape job with them, as cluster/monitoring does with `arm`",
           speculative_only=True),
    Signal("memory of the process", ("process_resident_memory_bytes",), "gauge", "stands",
           "node exporter, or Ray's `ray_component_rss_mb`"),
    Signal("start of the process", ("process_start_time_seconds",), "gauge", "stands",
           "without it a restart shows as counters that go back; `prometheus_client` exports it "
           "unless multiprocess mode is on"),
)  # fmt: skip
