"""Both servers before the first trial: can they be measured, and what has a reader to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.asking import (
    Counting,
    Question,
    asking,
    how_to_ask,
    weaker,
)
from orchestrator.adapters.attached.deployer import AttachedDeployer
from orchestrator.adapters.attached.identity import NOT_AVAILABLE
from orchestrator.adapters.attached.placement import on_this_host
from orchestrator.adapters.http.prometheus import PrometheusProbe
from orchestrator.errors import DeploymentError
from orchestrator.plan.block import Timeouts
from orchestrator.plan.deployment import Deployment, DeploymentPair
from orchestrator.plan.trial import Trial
from orchestrator.ports import Endpoint
from orchestrator.records import ARMS, Arm, CounterSnapshot, EngineFacts, FailureClass

_WITHOUT_TOKENS = ("speedup_e2e", "speedup_ttft")
"""The metrics that need no token counts."""
_TELLING = {
    "acceptance": ("drafts", "accepted_tokens"),
    "acceptance per position": ("accepted_per_position",),
    "generation counter (to cross-check usage)": ("generation_tokens",),
    "prefix-cache hits": ("prefix_cache_queries", "prefix_cache_hits"),
    "preemptions": ("preemptions",),
    "KV-cache usage": ("kv_cache_usage",),
}


@dataclass(frozen=True)
class SurveyedServer:
    """One arm's server, as it was found."""

    endpoint: Endpoint
    facts: EngineFacts
    counting: Counting
    counters: CounterSnapshot | None
    here: bool


@dataclass(frozen=True)
class Survey:
    """What the sweep will do with these servers."""

    counting: Counting
    """What both can do; both are asked so."""
    simulated: bool
    notes: tuple[str, ...]


def survey(
    deployer: AttachedDeployer,
    access: Access,
    pair: DeploymentPair,
    trials: Sequence[Trial],
    *,
    timeout_s: float,
    timeouts: Timeouts,
) -> Survey:
    """Asks both servers everything that has to be known before they are measured.

    Raises: DeploymentError with what is wrong with either, and what to change.
    """
    asked = questions(trials)
    servers: dict[Arm, SurveyedServer] = {}
    faults: list[tuple[Arm, DeploymentError]] = []
    for arm in ARMS:
        try:
            servers[arm] = _look(
                deployer, access, pair.of(arm), asked, timeout_s=timeout_s, timeouts=timeouts
            )
        except DeploymentError as fault:
            faults.append((arm, fault))
    if faults:
        told = "\n".join(f"attach.{arm}: {access.masked(fault.cause)}" for arm, fault in faults)
        raise DeploymentError(faults[0][1].failure, told)
    counting = weaker([server.counting for server in servers.values()])
    _refuse_undefined_metric(trials, counting)
    return Survey(
        counting,
        any(server.endpoint.simulated for server in servers.values()),
        tuple(access.masked(note) for note in _notes(servers, counting)),
    )


def questions(trials: Sequence[Trial]) -> tuple[Question, ...]:
    """Every different way in which the trials ask, with the workloads that ask so."""
    names: dict[Question, dict[str, None]] = {}
    for trial in trials:
        workload = trial.cell.workload
        question = Question(workload.endpoint, trial.cell.sampling, workload.fixed_length)
        names.setdefault(question, {})[workload.name] = None
    return tuple(replace(question, workloads=tuple(who)) for question, who in names.items())


def _look(
    deployer: AttachedDeployer,
    access: Access,
    deployment: Deployment,
    asked: Sequence[Question],
    *,
    timeout_s: float,
    timeouts: Timeouts,
) -> SurveyedServer:
    name = f"survey-{deployment.key}"
    endpoint = deployer.start(deployment, name=name, timeout_s=timeout_s)
    facts = deployer.facts(name)
    ask = asking(endpoint, access, timeouts)
    counting = how_to_ask(endpoint.base_url, asked, ask, access)
    counters = PrometheusProbe(tls=access.tls).read(endpoint)
    deployer.stop(name)
    return SurveyedServer(endpoint, facts, counting, counters, on_this_host(endpoint.base_url))


def _refuse_undefined_metric(trials: Sequence[Trial], counting: Counting) -> None:
    metrics = {trial.protocol.metric for trial in trials} - set(_WITHOUT_TOKENS)
    if metrics and not counting.tells_tokens:
        raise DeploymentError(
            FailureClass.BAD_CONFIGURATION,
            f"measure.metric: {', '.join(sorted(metrics))} needs the number of output tokens, and "
            "a server does not say it (no `usage`); "
            f"set measure.metric to one of {', '.join(_WITHOUT_TOKENS)}",
        )


def _notes(servers: Mapping[Arm, SurveyedServer], counting: Counting) -> Iterator[str]:
    for arm, server in servers.items():
        yield _who(arm, server)
    if counting.usage != "continuous":
        less = [arm for arm, server in servers.items() if server.counting.usage == counting.usage]
        yield (
            f"both servers are asked for usage: {counting.usage}, which is all that the "
            f"{' and the '.join(less)} server gives: how many tokens a chunk carries, and so the "
            f"gap between tokens (itl_s), is {NOT_AVAILABLE}"
        )
    yield from _doubts(servers["baseline"], servers["speculative"])


def _who(arm: Arm, server: SurveyedServer) -> str:
    facts = server.facts
    version = facts.engine_version or f"(version {NOT_AVAILABLE})"
    engine = f"engine {NOT_AVAILABLE}" if facts.engine == NOT_AVAILABLE else facts.engine
    missing = list(_missing(arm, server))
    lacking = f"; {NOT_AVAILABLE}: {', '.join(missing)}" if missing else ""
    return f"{arm}: {engine} {version} with {facts.model} at {facts.extra['attached']}{lacking}"


def _missing(arm: Arm, server: SurveyedServer) -> Iterator[str]:
    for what, fields in _TELLING.items():
        if arm == "baseline" and what.startswith("acceptance"):
            continue
        if server.counters is None or any(getattr(server.counters, f) is None for f in fields):
            yield what
    if not server.here:
        yield "CPU, memory and processes (the server is not on this host)"
    elif not server.endpoint.pids:
        yield "the server's processes (not visible from here)"
    yield "accelerator telemetry"


def _doubts(baseline: SurveyedServer, speculative: SurveyedServer) -> Iterator[str]:
    engines = [f"{s.facts.engine} {s.facts.engine_version}" for s in (baseline, speculative)]
    if engines[0] != engines[1]:
        yield (
            f"the arms run {engines[0]} and {engines[1]}: what is found is the difference "
            "between these two as well as that of speculation"
        )
    counted = baseline.counters.drafts if baseline.counters is not None else None
    if counted or baseline.facts.extra.get("speculation"):
        yield "the baseline server says that it speculates: are the two addresses swapped?"
    page = speculative.counters
    if page is not None and not page.drafts and not speculative.facts.extra.get("speculation"):
        yield (
            "the speculative server shows counters but no drafts: nothing confirms that it "
            "speculates"
        )
