"""Facts of a run, as they were observed. Frozen; nothing in here is derived.

Times are seconds. Inside a block they are relative to the block's start on a monotonic clock;
`*_unix_s` are wall-clock. A value that was not observed is `None`, never 0.
Numbers derived from these live in `orchestrator.measure`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

SCHEMA_VERSION = 1
"""Version of the raw records; part of every trial's id, so that old records are never mixed in."""

Arm = Literal["baseline", "speculative"]
ARMS: tuple[Arm, Arm] = ("baseline", "speculative")


class FailureClass(StrEnum):
    """What kind of end a deployment, a block or a trial came to."""

    OUT_OF_MEMORY = "out_of_memory"
    START_TIMEOUT = "start_timeout"
    START_FAILED = "start_failed"
    BAD_CONFIGURATION = "bad_configuration"
    CRASHED = "crashed"
    DEVICES_LOST = "devices_lost"
    UNRESPONSIVE = "unresponsive"
    ALL_REQUESTS_FAILED = "all_requests_failed"
    NO_VALID_PAIRS = "no_valid_pairs"
    CLIENT_FAILED = "client_failed"
    STORE_FAILED = "store_failed"
    INTERNAL = "internal"


class RequestError(StrEnum):
    """Why a request did not complete."""

    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
    FIRST_TOKEN_TIMEOUT = "first_token_timeout"
    STALL_TIMEOUT = "stall_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    RESET = "reset"
    TRUNCATED = "truncated"
    HTTP_STATUS = "http_status"
    STREAM_ERROR = "stream_error"
    PROTOCOL = "protocol"
    CANCELLED = "cancelled"


class InvalidReason(StrEnum):
    """Why a block must not be averaged in."""

    CLIENT_LATE = "client_late"
    CLIENT_LOOP_LAG = "client_loop_lag"
    CLIENT_CPU = "client_cpu"
    COUNTERS_INCONSISTENT = "counters_inconsistent"
    ENGINE_RESTARTED = "engine_restarted"
    DEVICE_THROTTLED = "device_throttled"
    DEVICE_CLOCK_CHANGED = "device_clock_changed"
    DEVICE_SHARED = "device_shared"
    HOST_BUSY = "host_busy"
    NOTHING_COMPLETED = "nothing_completed"
    LENGTHS_DIFFER = "lengths_differ"
    SATURATED = "saturated"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as the client saw it.

    `chunk_s[i]` is when chunk i that carries output arrived (relative to the block's start) and
    `chunk_tokens[i]` how many output tokens it carried, taken from the server's `usage`, never
    re-tokenised; `chunk_tokens` is None where the server does not say (then `tokens_from` is
    "usage_final": only the total is known).
    `offset_s` is the planned send time (None in a closed loop: it is sent when a slot is free).
    """

    request_id: str
    prompt_id: str
    category: str
    turn: int
    offset_s: float | None
    sent_s: float | None
    chunk_s: tuple[float, ...]
    chunk_tokens: tuple[int, ...] | None
    end_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    max_tokens: int
    finish_reason: str | None
    text: str
    token_ids: tuple[int, ...] | None = None
    tokens_from: Literal["usage_continuous", "token_ids", "usage_final", "none"] = "none"
    http_status: int | None = None
    error: RequestError | None = None
    error_text: str | None = None

    @property
    def completed(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """How well the load generator itself kept up during a block."""

    send_lag_p99_s: float | None
    send_lag_max_s: float | None
    loop_lag_p99_s: float | None
    loop_lag_max_s: float | None
    cpu_fraction: float | None
    """CPU seconds of the client / wall seconds, of one core; 1.0 = it could not have done more."""


@dataclass(frozen=True, slots=True)
class StageSums:
    """Sums over the engine steps of one kind since the engine started, from inside the engine.

    Times in seconds, of one worker (rank 0). A step lasts until the next one begins.
    """

    requests: int
    """Decoded together."""
    context: int
    """Their mean length so far, in tokens, rounded up to a power of two."""
    prefill: bool
    """The step read prompt as well."""
    speculation_length: int
    """Tokens proposed for a request, at most; 0: none in this step."""
    steps: float
    draft_s: float
    verify_s: float
    sample_s: float
    step_s: float
    step_s_squared: float
    tokens: float
    """Scheduled: proposed ones included, accepted or not."""


@dataclass(frozen=True, slots=True)
class CounterSnapshot:
    """The server's own counters at one moment, summed over replicas.

    `None` = the server does not expose it. `replica_ids` names the engine processes that were
    summed (start time or pid), so that a restart is noticed.
    """

    at_unix_s: float
    replica_ids: tuple[str, ...] = ()
    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_per_position: tuple[float, ...] | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    requests_finished: float | None = None
    preemptions: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hits: float | None = None
    kv_cache_usage: float | None = None
    running_requests: float | None = None
    waiting_requests: float | None = None
    acceptance_length_gauge: float | None = None
    """What a server without acceptance counters (SGLang) says of its last interval; it cannot be
    differenced over a block."""
    acceptance_rate_gauge: float | None = None
    stages: tuple[StageSums, ...] | None = None
    """Where the engine's steps spent their time; None where the engine does not say."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One telemetry reading, `at_s` after the block's start; keys as in `docs/metrics.md`."""

    at_s: float
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """One short stretch of load on one arm, with everything needed to judge whether it counts."""

    trial_id: str
    pair_index: int
    arm: Arm
    position: int
    """0 for the arm that went first within the pair, 1 for the second (A B, then B A)."""
    kind: Literal["warmup", "measured"]
    started_unix_s: float
    duration_s: float
    """From the block's start to the end of its last request."""
    requests: tuple[RequestRecord, ...]
    client: ClientHealth
    counters_before: CounterSnapshot | None
    counters_after: CounterSnapshot | None
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()
    simulated: bool = False
    ended_early: str | None = None
    """Why the client gave the block up before everything was sent; None: it did not."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What one running deployment says of itself."""

    deployment_key: str
    engine: str
    engine_version: str | None
    model: str
    start_s: float | None
    """Seconds from the order to start until the first successful health check."""
    pids: tuple[int, ...] = ()
    kv_capacity_tokens: int | None = None
    model_bytes: int | None = None
    simulated: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended."""

    trial_id: str
    status: Literal["finished", "failed", "stopped"]
    failure: FailureClass | None = None
    cause: str | None = None
    log_tail: str | None = None
    pairs_measured: int = 0
    pairs_valid: int = 0
    wall_s: float | None = None
    waiting_s: float | None = None
    """Spent until both arms were leased: engine starts, and waiting for a free device."""
    starting_s: float | None = None
    """Of that, starting engines."""
    warmup_s: float | None = None
    measured_s: float | None = None
    """Inside measured blocks, both arms."""


@dataclass(frozen=True, slots=True)
class RunUse:
    """One run of a sweep (a process, from its start to its end or its death): what it had and how
    its trials spent it."""

    began_unix_s: float
    wall_s: float = 0.0
    device_pairs: int = 1
    trials: int = 0
    measured_s: float = 0.0
    warmup_s: float = 0.0
    waiting_for_starts_s: float = 0.0
    waiting_s: float = 0.0
    """For a free device pair."""
    engine_starts: int = 0
    failed_starts: int = 0
    engines_starting_s: float = 0.0
    """Sum over engines from order to ready."""
