"""Observability, judged: a score card of what an operator sees, what is missing, how to get it.

A signal that the baseline shows and the speculative arm does not is a finding. One that neither
shows is the server's own gap: it lowers the score, and the card says how to get it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

from orchestrator.analyse.suites.kind import Kind, kind_of
from orchestrator.analyse.suites.metrics_page import (
    MetricsPage,
    first_exposed,
    read_metrics_page,
)
from orchestrator.analyse.suites.operator_signals import SIGNALS, Signal
from orchestrator.plan.deployment import deployment_from
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.observability import (
    AFTER_FAULTS,
    ENDPOINTS,
    IDLE,
    LOAD,
    LOADED,
    METRICS,
    PATHS,
    REQUEST_ID,
    SCRAPE,
    SCRAPED,
    TRACE,
)
from orchestrator.run.suites.openai import read
from orchestrator.run.suites.record import Asked, CaseResult, CaseStatus, SuiteRecord, SuiteResult

TOKENS_TOLERANCE = 0.01
"""Between what the counters say was generated and what the answers' usage says."""

Answer = tuple[bool, str]
"""Whether it is there, and what was seen or is missing."""


@dataclass(frozen=True)
class _View:
    """Everything seen of one arm."""

    arm: Arm
    pages: Mapping[str, MetricsPage]
    fault: str | None
    """Why there is no page."""
    under_load: tuple[MetricsPage, ...]
    asked: tuple[Asked, ...]
    log: str | None
    engine: Mapping[str, Any]

    def of(self, case: str) -> list[Asked]:
        return [one for one in self.asked if one.case == case]


def judge_observability(record: SuiteRecord) -> SuiteResult:
    """Every signal, then what holds between them, the log and the traces."""
    views = {arm: _view(record, arm) for arm in ARMS}
    cases = [
        _both(
            signal.name,
            _must(signal),
            views,
            partial(_signal, signal),
            signal.obtain,
            speculative_only=signal.speculative_only,
        )
        for signal in SIGNALS
    ]
    cases += [
        _both(name, must, views, ask, obtain, speculative_only=only)
        for name, must, ask, obtain, only in _CHECKS
    ]
    shown = [case for case in cases if case.status is CaseStatus.PASS]
    run = [case for case in cases if case.status is not CaseStatus.NOT_RUN]
    lost = [case for case in cases if case.status is CaseStatus.FAIL]
    missing = [case.case for case in cases if case.status is CaseStatus.BOTH_FAIL]
    verdict = f"{len(shown)} of {len(run)} to be seen"
    if lost:
        verdict += f", {len(lost)} lost with speculation"
    return SuiteResult(
        suite=record.suite,
        pair_key=record.pair_key,
        label=deployment_from(record.speculative).label(),
        verdict=verdict,
        ok=False if lost else (True if record.complete and run else None),
        cases=tuple(cases),
        metrics={
            "observability_signals": float(len(run)),
            "observability_signals_shown": float(len(shown)),
            **({"observability_score": len(shown) / len(run)} if run else {}),
        },
        notes=(*record.notes, *((f"missing: {', '.join(missing)}",) if missing else ())),
        complete=record.complete,
        simulated=record.simulated,
    )


def _both(
    name: str,
    must: str,
    views: Mapping[Arm, _View],
    ask: Callable[[_View], Answer],
    obtain: str,
    *,
    speculative_only: bool,
) -> CaseResult:
    if not views["speculative"].asked:
        return CaseResult(name, CaseStatus.NOT_RUN, must, "not observed")
    said = {arm: ask(view) for arm, view in views.items()}
    there, seen = said["speculative"]
    if there:
        return CaseResult(name, CaseStatus.PASS, must, seen)
    lost = said["baseline"][0] and not speculative_only
    status = CaseStatus.FAIL if lost else CaseStatus.BOTH_FAIL
    evidence = {"obtain": obtain, "baseline": said["baseline"][1]}
    return CaseResult(name, status, must, f"{seen}; to get it: {obtain}", evidence=evidence)


def _must(signal: Signal) -> str:
    by = f" by {', '.join(signal.labels)}" if signal.labels else ""
    moving = {"grows": ", grows under load", "while busy": ", moves under load", "stands": ""}
    return f"a {signal.kind}{by}{moving[signal.moves]}"


def _signal(signal: Signal, view: _View) -> Answer:
    last = view.pages.get(AFTER_FAULTS if signal.after_faults else LOADED)
    first = view.pages.get(LOADED if signal.after_faults else IDLE)
    if first is None or last is None:
        return False, view.fault or "no page of metrics"
    name = first_exposed(last, signal.exposed_as)
    where = dict(signal.where)
    after = None if name is None else last.total(name, **where)
    if name is None or after is None:
        return False, "not exposed"
    if last.types[name] not in (signal.kind, "unknown", "untyped"):
        return False, f"{name} is a {last.types[name]}"
    lacking = set(signal.labels) - set(last.labels(name))
    if lacking:
        return False, f"{name} lacks the label {', '.join(sorted(lacking))}"
    before = first.total(name, **where) or 0.0
    if signal.moves == "grows" and not after > before:
        return False, f"{name} stands still at {after:g}"
    if signal.moves == "while busy":
        busy = [page.total(name, **where) for page in view.under_load]
        if all(value is None or value == before for value in busy):
            return False, f"{name} stood at {before:g} in {len(busy)} readings under load"
    labels = ", ".join(last.labels(name))
    return True, f"{name}{{{labels}}}" if labels else name


def _page(view: _View) -> Answer:
    page = view.pages.get(LOADED)
    if page is None:
        return False, view.fault or "no page"
    return True, f"{page.families} metrics"


def _tokens_agree(view: _View) -> Answer:
    """The growth of the output counter over the load against the sum of the answers' usage."""
    idle, loaded = view.pages.get(IDLE), view.pages.get(LOADED)
    name = None if loaded is None else first_exposed(loaded, _exposed("output tokens"))
    if idle is None or loaded is None or name is None:
        return False, "no counter of output tokens"
    counted = (loaded.total(name) or 0.0) - (idle.total(name) or 0.0)
    used = math.fsum(
        float((read(one.answer).usage or {}).get("completion_tokens") or 0)
        for one in (*view.of(LOAD), *view.of(SCRAPED))
        if not one.part.startswith(SCRAPE)
    )
    agree = abs(counted - used) <= TOKENS_TOLERANCE * max(used, 1.0)
    return agree, f"{counted:g} tokens counted, {used:g} in the answers"


def _acceptance_adds_up(view: _View) -> Answer:
    page = view.pages.get(LOADED)
    if page is None:
        return False, view.fault or "no page"
    names = {
        key: first_exposed(page, _exposed(key)) for key in ("drafted tokens", "accepted tokens")
    }
    by_position = first_exposed(page, _exposed("accepted tokens, by position"))
    if None in names.values():
        return False, "not counted"
    drafted, accepted = (page.total(str(name)) or 0.0 for name in names.values())
    seen = f"{drafted:g} drafted, {accepted:g} accepted, {drafted - accepted:g} rejected"
    if not 0 <= accepted <= drafted:
        return False, seen
    if by_position is not None and (page.total(by_position) or 0.0) != accepted:
        return False, f"{seen}, {page.total(by_position):g} over the positions"
    return True, seen


def _scraped(view: _View) -> Answer:
    """Every scrape under load is answered, and no counter goes back."""
    scrapes = [one for one in view.of(SCRAPED) if one.part.startswith(SCRAPE)]
    if not scrapes:
        return False, "not scraped"
    failed = [one for one in scrapes if one.answer.status != 200]
    if failed:
        return False, f"{len(failed)} of {len(scrapes)} scrapes failed"
    back = {name for a, b in pairwise(view.under_load) for name in b.gone_back(a)}
    if back:
        return False, f"counters that went back: {', '.join(sorted(back)[:3])}"
    slowest = max(one.answer.seconds for one in scrapes)
    at_rest, scraped = (_median_seconds(view, case) for case in (LOAD, SCRAPED))
    beside = f", requests {scraped / at_rest:.2f} times as long" if at_rest and scraped else ""
    return True, f"{len(scrapes)} scrapes, the slowest {slowest * 1e3:.0f} ms{beside}"


def _median_seconds(view: _View, case: str) -> float | None:
    seconds = [one.answer.seconds for one in view.of(case) if not one.part.startswith(SCRAPE)]
    return median(seconds) if seconds else None


def _endpoint(path: str) -> Callable[[_View], Answer]:
    def ask(view: _View) -> Answer:
        for one in view.of(ENDPOINTS):
            if one.part == path:
                return one.answer.status == 200, f"{path}: {one.answer.status or 'no answer'}"
        return False, "not asked"

    return ask


def _request_id(view: _View) -> Answer:
    for one in view.of(TRACE):
        if REQUEST_ID in one.answer.body:
            return True, "the answer's id carries the request's X-Request-Id"
    return False, "the X-Request-Id of a request is not in its answer"


def _trace_accepted(view: _View) -> Answer:
    for one in view.of(TRACE):
        kind, why = kind_of(one.ask, one.answer)
        return kind is Kind.ANSWERED, f"a request with traceparent: {why}"
    return False, "not asked"


def _spans(view: _View) -> Answer:
    if endpoint := view.engine.get("otlp_traces_endpoint"):
        return True, f"the engine exports spans to {endpoint}"
    disabled = view.log is not None and "tracing is disabled" in view.log
    return False, "tracing is off" + (", says the engine's log" if disabled else "")


def _in_log(*patterns: str) -> Callable[[_View], Answer]:
    def ask(view: _View) -> Answer:
        if view.log is None:
            return False, "the log cannot be read from here"
        for pattern in patterns:
            if found := re.search(pattern, view.log):
                return True, found.group()[:120]
        return False, "not in the log"

    return ask


def _per_request(view: _View) -> Answer:
    for one in view.of(LOAD):
        if re.search(r'"[^"]*(?:accept|draft|spec_decode)[^"]*"\s*:', one.answer.body):
            return True, "in the answer's body"
    return False, "the answers do not say"


_OTLP = (
    "`engine: {otlp_traces_endpoint: http://collector:4317}`; spans of the gateway: Ray Serve's "
    "`--tracing-exporter-import-path`"
)
_CHECKS: tuple[tuple[str, str, Callable[[_View], Answer], str, bool], ...] = (
    ("page of metrics", "/metrics in Prometheus' text format", _page,
     "`/metrics` must be on", False),
    ("tokens agree", "counters and answers tell of as many tokens", _tokens_agree,
     "count from the answers' usage", False),
    ("acceptance adds up", "accepted <= drafted, positions add up", _acceptance_adds_up,
     "without these counters acceptance cannot be known", True),
    ("scraped under load", "answered, counters only grow", _scraped,
     "scrape less often, or from a sidecar", False),
    *((f"{path} answers", "status 200", _endpoint(path), how, False) for path, how in zip(PATHS, (
        "probe a request instead", "the engine's log at its start", "the configuration",
        "vLLM: `enable_server_load_tracking`, else count at the gateway"), strict=True)),
    ("request id", "a client's id is found again", _request_id,
     "vLLM takes X-Request-Id; other servers: log it at the gateway", False),
    ("trace context accepted", "a request with traceparent is answered", _trace_accepted,
     "strip the header at the gateway", False),
    ("spans", "OpenTelemetry spans of requests", _spans, _OTLP, False),
    ("log of throughput", "a periodic line", _in_log(r"Avg generation throughput: [\d.]+",
     r"gen throughput \(token/s\): [\d.]+"), "`disable_log_stats: false`", False),
    ("log of acceptance", "a periodic line", _in_log(r"[Mm]ean acceptance length: [\d.]+",
     r"accept len: [\d.]+"), "`disable_log_stats: false`", True),
    ("log of stage times", "queue, prefill and decode times of a request",
     _in_log(r"(?i)(?:prefill|queue)[ _]time\D{0,4}[\d.]+"),
     "not logged: the histograms above, or spans with `collect_detailed_traces`", False),
    ("acceptance of one request", "said in its answer or log", _per_request,
     "`engine: {per_request_spec_decode_metrics: summary}` (vLLM)", True),
)  # fmt: skip


def _exposed(name: str) -> tuple[str, ...]:
    return next(signal.exposed_as for signal in SIGNALS if signal.name == name)


def _view(record: SuiteRecord, arm: Arm) -> _View:
    asked = tuple(one for one in record.asked if one.subject == arm)
    pages: dict[str, MetricsPage] = {}
    under_load: list[MetricsPage] = []
    fault = None
    for one in asked:
        scrape = one.case == SCRAPED and one.part.startswith(SCRAPE)
        if one.case != METRICS and not scrape:
            continue
        try:
            if one.answer.status != 200:
                raise ValueError(f"/metrics: {one.answer.status or one.answer.error_text}")
            page = read_metrics_page(one.answer.body)
        except ValueError as error:
            fault = str(error)
            continue
        if scrape:
            under_load.append(page)
        else:
            pages[one.part] = page
    deployment = record.baseline if arm == "baseline" else record.speculative
    log = record.extra.get("logs", {}).get(arm)
    return _View(arm, pages, fault, tuple(under_load), asked, log, deployment["engine"])
