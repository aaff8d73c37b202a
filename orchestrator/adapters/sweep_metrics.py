"""A sweep as Prometheus sees it: trials, pairs, engine starts, acceptance and speedup as they come.

To watch, not to conclude: what is exposed of a trial that runs is its latest look, not its verdict.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from orchestrator.plan.trial import Trial
from orchestrator.ports import OnProgress, Progress

LOOPBACK = "127.0.0.1"
_CELL = (
    "trial", "kind", "method", "draft", "speculation_length", "batch_size", "temperature",
    "workload", "load",
)  # fmt: skip
_SHOWN = ("acceptance_rate", "acceptance_length")
_SPEEDUP = "speedup_"


class SweepMetrics:
    """Counts progress and hands it on; a context manager while its page is served."""

    def __init__(
        self, sweep: str, *, planned: int, done: int, simulated: bool, on_progress: OnProgress
    ) -> None:
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None
        registry = self.registry = CollectorRegistry()
        constant = {"sweep": sweep, "simulated": str(simulated).lower()}
        self._constant = constant
        names = tuple(constant)

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"orchestrator_{name}", text, (*names, *labels), registry=registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"orchestrator_{name}", text, (*names, *labels), registry=registry)

        self._planned = gauge("trials_planned", "Trials of the sweep, as far as it is known.")
        self._running = gauge("trials_running", "Trials being measured.")
        self._ended = counter("trials_ended", "Trials that ended in this run.", ("status",))
        self._pairs = counter("pairs", "Pairs of blocks that were measured.")
        self._starts = counter("engine_starts", "Engines that were started.", ("outcome",))
        self._suites = counter("suites_ended", "Suites that ended in this run.", ("status",))
        self._event = gauge("last_event_timestamp_seconds", "When something last happened.")
        self._pairs_of = gauge("trial_pairs", "Pairs of a trial so far.", _CELL)
        self._speedup = gauge(
            "trial_speedup", "Speedup at the latest look; above 1 speculation is better.",
            (*_CELL, "metric", "bound"),
        )  # fmt: skip
        self._acceptance = {
            name: gauge(f"trial_{name}", f"{name} of the speculative arm so far.", _CELL)
            for name in _SHOWN
        }
        self._planned.labels(**constant).set(planned)
        self._known = done
        self._most = planned
        self._running.labels(**constant).set(0)
        for status in ("finished", "failed", "stopped"):
            self._ended.labels(**constant, status=status)
        for outcome in ("ready", "failed"):
            self._starts.labels(**constant, outcome=outcome)
        self._pairs.labels(**constant)

    def serve(self, port: int) -> int:
        """Answer on loopback; port 0 takes a free one. Returns the port.

        Raises: OSError when the port is taken.
        """
        self._server, self._thread = start_http_server(port, addr=LOOPBACK, registry=self.registry)
        return int(self._server.server_port)

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def __enter__(self) -> SweepMetrics:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, event: Progress) -> None:
        with self._lock:
            self._count(event)
        self._on_progress(event)

    def _count(self, event: Progress) -> None:
        constant = self._constant
        self._event.labels(**constant).set_to_current_time()
        if event.kind == "engine_ready":
            self._starts.labels(**constant, outcome="ready").inc()
        elif event.kind == "engine_failed":
            self._starts.labels(**constant, outcome="failed").inc()
        elif event.kind == "trial_started":
            self._running.labels(**constant).inc()
            self._known += 1
            # Refinements and confirmations come on top of what was planned.
            self._most = max(self._most, self._known)
            self._planned.labels(**constant).set(self._most)
        elif event.kind == "pair" and event.trial is not None and event.report is not None:
            self._pairs.labels(**constant).inc()
            self._look(event.trial, event.report.pairs_done, event.report.metrics)
        elif event.kind == "trial_ended" and event.outcome is not None:
            self._running.labels(**constant).dec()
            self._ended.labels(**constant, status=event.outcome.status).inc()
        elif event.kind == "suite_ended" and event.outcome is not None:
            self._suites.labels(**constant, status=event.outcome.status).inc()

    def _look(self, trial: Trial, pairs: int, metrics: Mapping[str, float]) -> None:
        labels = {**self._constant, **_labels(trial)}
        self._pairs_of.labels(**labels).set(pairs)
        for name, gauge in self._acceptance.items():
            if name in metrics:
                gauge.labels(**labels).set(metrics[name])
        for name, value in metrics.items():
            if not name.startswith(_SPEEDUP):
                continue
            metric, _, bound = name.rpartition("_")
            if bound not in ("low", "high"):
                metric, bound = name, "estimate"
            self._speedup.labels(**labels, metric=metric, bound=bound).set(value)


def _labels(trial: Trial) -> dict[str, str]:
    cell = trial.cell
    return {
        "trial": trial.id,
        "kind": trial.kind,
        "method": cell.method,
        "draft": cell.draft or "",
        "speculation_length": str(cell.speculation_length),
        "batch_size": str(cell.batch_size),
        "temperature": f"{cell.sampling.temperature:g}",
        "workload": cell.workload.name,
        "load": cell.load.label(),
    }
