"""The outside world as the product sees it. Every port has at least two implementations.

| port | for real | for tests, faults and scale |
|---|---|---|
| Deployer | adapters.ray_serve | adapters.simulated |
| LoadClient | adapters.http | adapters.simulated |
| ServerProbe | adapters.http (Prometheus text) | adapters.simulated |
| Asker | adapters.http | adapters.simulated |
| Embedder | adapters.embedding | adapters.simulated |
| Telemetry | adapters.local (host), adapters.nvml | adapters.simulated |
| LoadStream | adapters.http | adapters.simulated |
| FaultInjector | adapters.faults | adapters.simulated |
| Executor | adapters.ray_tune | adapters.local |
| Tracker | adapters.mlflow | adapters.local (none) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from orchestrator.errors import DeploymentError
from orchestrator.plan.block import BlockPlan, Timeouts
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.plan.fresh import FreshRequests
from orchestrator.plan.trial import Trial
from orchestrator.records import (
    Arm,
    ClientHealth,
    CounterSnapshot,
    EngineFacts,
    Outcome,
    RequestError,
    RequestRecord,
    Sample,
)


@dataclass(frozen=True)
class Endpoint:
    """Where a deployment answers. `base_url` ends before `/v1`: `http://127.0.0.1:8000/baseline`."""

    name: str
    base_url: str
    model: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    pids: tuple[int, ...] = ()
    """Processes of the engine on this host, for per-process telemetry."""
    simulated: bool = False
    stages_path: str | None = None
    """Where the engine says what its steps spend their time on; None: it does not."""
    node: str | None = None
    """The cluster's node from which it is measured; None: the one on which the trial runs."""


@dataclass(frozen=True)
class BlockObservation:
    """What the load generator saw in one block."""

    started_unix_s: float
    duration_s: float
    requests: tuple[RequestRecord, ...]
    client: ClientHealth
    ended_early: str | None = None
    """Why the client gave the block up: the queue grew without bound. Requests that were in flight
    or not yet sent are records with the error `cancelled`."""


class Deployer(Protocol):
    """Starts and stops engines. `start` blocks until the engine answers, or raises."""

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        """Raises: DeploymentError with the class, the cause in one line and the log's end."""

    def facts(self, name: str) -> EngineFacts: ...

    def healthy(self, name: str) -> bool:
        """Raises: DevicesLost when the node it ran on is gone."""

    def autopsy(self, name: str) -> DeploymentError | None:
        """Why an engine that is not healthy is not: crashed, out_of_memory or unresponsive, with
        the end of its log. None where nothing is known of it."""

    def stop(self, name: str) -> None:
        """Returns when the processes are gone and their memory is free. Unknown name: nothing."""

    def close(self) -> None:
        """Stops everything this deployer started."""


@runtime_checkable
class Sleeper(Protocol):
    """A Deployer whose engines can give up their devices' memory and take it again."""

    def can_sleep(self, name: str) -> bool: ...

    def sleep(self, name: str) -> None:
        """Returns when the memory is free. Raises: DeploymentError."""

    def wake(self, name: str) -> None:
        """Returns when it answers again. Raises: DeploymentError."""


class LoadClient(Protocol):
    """Sends one block and returns what was seen. Never raises for a request that failed."""

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """What a stream offers to each arm: so many in flight, or a Poisson rate. One is None."""

    concurrency: int | None = None
    rate_rps: float | None = None

    @property
    def level(self) -> float:
        return float((self.concurrency or 0) if self.rate_rps is None else self.rate_rps)


NO_LOAD = OfferedLoad(concurrency=0)


class LoadStream(Protocol):
    """Load on both arms at once that goes on until it is told otherwise.

    Times are seconds since the stream was opened. Both arms are sent the same sequence of requests,
    each at its own pace where the load is a number in flight. A request that fails is followed by
    the next one after a second, so that a dead server is not stormed.
    """

    def offer(self, load: OfferedLoad) -> None:
        """From now on; what is in flight goes on."""

    def run_until(self, at_s: float) -> Mapping[Arm, Sequence[RequestRecord]]:
        """Waits until then; the requests that have ended since the last call."""

    def redirect(self, arm: Arm, endpoint: Endpoint) -> None:
        """The arm answers there now; what is in flight fails by itself."""

    def now_s(self) -> float: ...

    def in_flight(self) -> int:
        """Requests of both arms, at the last `run_until`."""

    def next_index(self) -> int:
        """Requests with a lower index may have been sent to an arm."""

    def close(self) -> None:
        """What is in flight is given up."""


class OpenStream(Protocol):
    def __call__(
        self,
        endpoints: Mapping[Arm, Endpoint],
        requests: FreshRequests,
        *,
        first_index: int,
        timeouts: Timeouts,
    ) -> LoadStream: ...


class FaultUnavailable(Exception):
    """This fault cannot be injected here; the message says why."""


class Injection(Protocol):
    """A fault that holds for as long as it was asked to, and ends by itself, on time, whatever the
    one who asked for it is waiting for meanwhile."""

    def undo(self) -> None:
        """Ends it now, whatever it takes. May be called twice."""


class FaultInjector(Protocol):
    """Makes things go wrong on purpose. `fault` is a `SoakFault` as plain JSON."""

    def way_to(self, arm: Arm, endpoint: Endpoint, kinds: Sequence[str]) -> Endpoint:
        """Where load is to be sent, so that faults of these kinds can be injected on its way."""

    def inject(self, fault: Mapping[str, Any], endpoints: Mapping[Arm, Endpoint]) -> Injection:
        """Into all these arms at once. Raises: FaultUnavailable."""

    def close(self) -> None:
        """Undoes what still holds, and ends what stood in the way."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a suite, down to its bytes: also what no well-behaved client sends."""

    path: str = "/v1/chat/completions"
    body: bytes = b""
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    timeout_s: float = 60.0
    abandon_after_events: int | None = None
    """Close the connection after so many server-sent events; 0: as soon as the head has come."""
    abandon_after_s: float | None = None
    """Close the connection so long after the request was sent, whatever has come."""
    send_bytes_per_s: float | None = None
    """A slow client: the body is sent at this pace."""
    read_bytes_per_s: float | None = None
    """A slow reader."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; times in seconds since the request was sent."""

    status: int | None
    body: str
    """Decoded as UTF-8 with replacement; of a stream, everything that came. Cut at a limit."""
    events: tuple[tuple[float, str], ...] = ()
    """(when, data) of every server-sent event, `[DONE]` included."""
    content_type: str | None = None
    error: RequestError | None = None
    """Why there is no whole HTTP answer. None for a status of 4xx or 5xx: that is an answer."""
    error_text: str | None = None
    seconds: float = 0.0
    abandoned: bool = False
    """The client closed it, as it was asked to."""
    truncated_body: bool = False
    """More came than is kept."""


class Asker(Protocol):
    """Puts single requests to a server. Never raises for what the server does."""

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        """The answers in the order of `asks`, with at most `in_flight` open at once."""


class Embedder(Protocol):
    """Sentences as vectors whose angle says how alike they mean."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of length 1 a text; an empty text has one, too."""


class ServerProbe(Protocol):
    """Reads a server's own counters."""

    def read(self, endpoint: Endpoint) -> CounterSnapshot | None:
        """None when the server exposes nothing that is understood."""


class TelemetryRun(Protocol):
    def stop(self) -> tuple[Sample, ...]: ...


class Telemetry(Protocol):
    """Samples host and device while a block runs."""

    def start(self, endpoint: Endpoint) -> TelemetryRun: ...


class PairProvider(Protocol):
    """The pool, as a trial sees it."""

    def lease(self, pair: DeploymentPair, *, holder: str) -> Lease:
        """Blocks until both arms are warm and the devices are free. Raises: DeploymentError."""

    def activate(self, lease: Lease, arm: Arm) -> Activated:
        """Where `arm` answers now; before every block. Where the arms take turns on one device,
        the other is put to sleep or stopped first. Raises: DeploymentError."""

    def broken_arms(self, lease: Lease) -> tuple[Arm, ...]:
        """The arms whose engine no longer answers its health check. Raises: DevicesLost."""

    def autopsy(self, lease: Lease, arm: Arm) -> DeploymentError | None:
        """What became of a broken arm's engine, where that is known."""

    def release(self, lease: Lease, *, broken: Sequence[Arm] = ()) -> None:
        """`broken` names the arms whose engine must not be used again."""


@dataclass(frozen=True)
class Activated:
    """An arm that can be measured."""

    endpoint: Endpoint
    fresh: bool = False
    """It was started for this turn: it has to be warmed up."""


@dataclass(frozen=True)
class Lease:
    """The right to measure on a warm pair, alone."""

    id: str
    pair_key: str
    baseline: Endpoint
    speculative: Endpoint
    baseline_facts: EngineFacts
    speculative_facts: EngineFacts
    starting_s: float = 0.0
    """Spent on starting engines for it."""

    def endpoint(self, arm: Arm) -> Endpoint:
        return self.baseline if arm == "baseline" else self.speculative


@dataclass(frozen=True)
class PairReport:
    """What a trial reports after every pair; `metrics` under METRICS.md's names."""

    trial_id: str
    pairs_done: int
    pairs_max: int
    metrics: Mapping[str, float]
    ends: bool = False
    """The trial ends with this pair: it has its answer, or its protocol is exhausted."""


ReportPair = Callable[[PairReport], str | None]
"""Returns why the trial is to be stopped here, or None. Where whoever listens stops trials itself
(Ray Tune does), it does not return."""


@dataclass(frozen=True)
class Progress:
    """An event of the sweep for whoever shows it: a trial's pair, its end, an engine's start."""

    kind: str
    """engine_starting | engine_ready | engine_failed | trial_started | pair | trial_ended |
    trial_reused |
    suite_started | suite_said | suite_ended"""
    trial: Trial | None = None
    report: PairReport | None = None
    outcome: Outcome | None = None
    suite: str | None = None
    """A suite's id."""
    text: str = ""


OnProgress = Callable[[Progress], None]


class Blocks(Protocol):
    """What a trial sends; the same plan goes to both arms. Picklable."""

    def warmup(self) -> BlockPlan: ...

    def pair(self, index: int) -> BlockPlan: ...


@dataclass(frozen=True)
class Job:
    """A trial and what it sends."""

    trial: Trial
    blocks: Blocks


class Steering(Protocol):
    """A search at work. Called by one thread; `now_s` is the caller's monotonic clock.

    Two implementations: search.steering.Steering, and none at all (every job in its order).
    """

    def next(self, now_s: float) -> Trial | None:
        """The trial to begin now; None: no more is begun."""

    def after_pair(self, report: PairReport, now_s: float) -> str | None:
        """Why the trial that reports is to be stopped; None: it goes on."""

    def ended(self, outcome: Outcome, now_s: float) -> None:
        """A trial that `next` gave has ended, however it did."""


class Executor(Protocol):
    """Runs trials, as many at once as device pairs exist; returns when all have ended."""

    def run(
        self, jobs: Sequence[Job], on_progress: OnProgress, steering: Steering | None = None
    ) -> dict[str, Outcome]:
        """The outcomes of what was run: every job, or those that `steering` asked for."""


@dataclass(frozen=True)
class DeviceUse:
    """What a run of a sweep had and did, as far as the pool knows."""

    device_pairs: int
    engine_starts: int = 0
    failed_starts: int = 0
    starting_s: float = 0.0
    """Sum over engines from order to ready; engines that start side by side count each."""


@dataclass(frozen=True)
class TrackedSweep:
    """The parent run."""

    name: str
    sweep_id: str
    """Stable: the same sweep run again, or rebuilt, finds its run."""
    description: str
    """Markdown: what was asked, how to read it, where the report is."""
    params: Mapping[str, Any]
    tags: Mapping[str, str]


@dataclass(frozen=True)
class TrackedDataset:
    """The prompt set of a trial."""

    name: str
    source: str
    digest: str
    profile: Mapping[str, Any]
    """Counts and length statistics."""


@dataclass(frozen=True)
class TrackedRun:
    """One trial, as a tracking store holds it; derived whole from the store's records."""

    trial_id: str
    name: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    """The summary; logged last, so that it is what a table shows."""
    steps: tuple[Mapping[str, float], ...]
    """One mapping per pair, in order."""
    tags: Mapping[str, str]
    note: str
    """Markdown."""
    artifacts: Mapping[str, Path]
    """Artifact path -> file or folder."""
    dataset: TrackedDataset | None
    started_unix_s: float
    ended_unix_s: float
    status: Literal["FINISHED", "FAILED", "KILLED"]
    system_steps: tuple[Mapping[str, float], ...] = ()
    """What each pair took of the machine (processor, memory, device), in order."""


class Tracker(Protocol):
    """Where results are compared. One writer. Everything it holds can be rebuilt from the store.

    Every method raises errors.TrackingUnavailable, quickly, when the tracking server cannot be
    used; nothing is lost then: `track SWEEP` rebuilds it. Logging a trial again replaces its run.
    """

    def open_sweep(self, sweep: TrackedSweep) -> None: ...

    def log_run(self, run: TrackedRun) -> None: ...

    def close_sweep(
        self,
        *,
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        artifacts: Mapping[str, Path],
        status: Literal["FINISHED", "FAILED", "KILLED"],
    ) -> None: ...

    def location(self) -> str:
        """What a person opens to look at it."""

    def close(self) -> None:
        """Ends what it holds, in the middle of a write if need be; any thread may call it."""
