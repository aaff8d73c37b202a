"""What an operator really sees of the server under test: pages, logs, ids, under load and without.

The pages are kept as they came; what is missing on them says `analyse.suites.observability`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import DeploymentError
from orchestrator.ports import Ask
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.after_case import warm_up
from orchestrator.run.suites.openai import completion
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.suite import Bench

VERSION = 1
METRICS, LOAD, SCRAPED, FAULTS, TRACE, ENDPOINTS = (
    "metrics", "load", "load, scraped", "faults", "trace", "endpoints",
)  # fmt: skip
IDLE, LOADED, AFTER_FAULTS = "idle", "loaded", "after faults"
SCRAPE = "scrape"
PATHS = ("/health", "/version", "/v1/models", "/load")
REQUEST_ID = "operator-asks-4711"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
"""W3C Trace Context's own example, sampled."""


@dataclass(frozen=True)
class ObservabilitySuite:
    """Rounds of load, every second one scraped all along, between readings of the page."""

    rounds: int = 4
    requests: int = 16
    in_flight: int = 4
    answer_tokens: int = 24
    scrape_every: int = 2
    """One scrape for so many requests."""
    name: str = field(default="observability", init=False)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "version": VERSION,
            "rounds": self.rounds,
            "requests": self.requests,
            "in_flight": self.in_flight,
            "answer_tokens": self.answer_tokens,
            "scrape_every": self.scrape_every,
        }

    def run(self, bench: Bench) -> SuiteRecord:
        notes: list[str] = []
        logs: dict[str, str | None] = {}
        complete = True
        try:
            for arm in ARMS:
                bench.say(f"observability: {arm}")
                warm_up(bench, arm)
                complete = self._observe(bench, arm) and complete
                logs[arm] = bench.subjects.log(arm)
            bench.look_after("all")
        except DeploymentError as error:
            complete = False
            notes.append(f"an engine could not be started again: {error}")
        if not complete and not notes:
            notes.append("time was up")
        return bench.record(self.name, complete=complete, notes=notes, extra={"logs": logs})

    def _observe(self, bench: Bench, arm: Arm) -> bool:
        """False when time was up before the end."""
        bench.put(ENDPOINTS, arm, [_get(path) for path in PATHS], parts=PATHS)
        bench.put(METRICS, arm, [_get("/metrics")], parts=[IDLE])
        for number in range(self.rounds):
            if not bench.time_left:
                return False
            self._round(bench, arm, number)
        bench.put(METRICS, arm, [_get("/metrics")], parts=[LOADED])
        if not bench.time_left:
            return False
        self._faults(bench, arm)
        bench.put(METRICS, arm, [_get("/metrics")], parts=[AFTER_FAULTS])
        self._trace(bench, arm)
        return True

    def _round(self, bench: Bench, arm: Arm, number: int) -> None:
        """The same requests whether scraped or not, but for the number that makes prompts new."""
        asks: list[Ask] = []
        parts: list[str] = []
        scraped = number % 2 == 1
        for index in range(self.requests):
            if scraped and index % self.scrape_every == 0:
                asks.append(_get("/metrics"))
                parts.append(f"{SCRAPE} {number}.{index}")
            text = f"In the year {1700 + 97 * number + index} the town of Elm, Elm on the river,"
            # Of several lengths: if all ended together, a scrape would always meet an idle engine.
            length = self.answer_tokens + 5 * (index % 4)
            fields = {"max_tokens": length, "temperature": 0, "ignore_eos": True}
            asks.append(completion(bench.model(arm), text, **fields))
            parts.append(f"request {number}.{index}")
        bench.put(
            SCRAPED if scraped else LOAD,
            arm,
            asks,
            in_flight=self.in_flight,
            repeat=number,
            parts=parts,
        )

    def _faults(self, bench: Bench, arm: Arm) -> None:
        """What should show as refused and as aborted."""
        model = bench.model(arm)
        refused = completion(model, "hello", max_tokens=-1)
        leaving = replace(
            completion(model, "Tell a long story.", max_tokens=64, stream=True, ignore_eos=True),
            abandon_after_events=2,
        )
        after = completion(model, "hello", max_tokens=4, temperature=0)
        bench.put(FAULTS, arm, [refused, leaving, after], parts=["refused", "aborted", "after"])

    def _trace(self, bench: Bench, arm: Arm) -> None:
        ask = completion(bench.model(arm), "hello", max_tokens=4, temperature=0)
        headers = (*ask.headers, ("traceparent", TRACEPARENT), ("X-Request-Id", REQUEST_ID))
        bench.put(TRACE, arm, [replace(ask, headers=headers)], parts=["traced"])


def _get(path: str) -> Ask:
    return Ask(path=path, method="GET", headers=(), timeout_s=10.0)
