"""What is to be deployed, its limits, and what voids it, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.decide.expiry import facts_of
from orchestrator.decide.guard import Guard
from orchestrator.decide.recommendation import Recommendation, recommend
from orchestrator.decide.schedule import schedule_trials
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH
from orchestrator.report.serve_config import (
    DECISION_FILE,
    DEPLOY_FILE,
    attached,
    models_of,
    vllm_serve,
)


@dataclass(frozen=True)
class DeployView:
    """Empty texts and tuples where there is nothing of the kind."""

    text: str
    """What is deployed by which file, or why nothing is."""
    command: str
    """`vllm serve …`."""
    schedule: str
    guard: tuple[tuple[str, str], ...]
    """(limit, value); beyond one of them the baseline is to be used."""
    expires: tuple[tuple[str, str], ...]
    """(fact, value as it was measured)."""
    evidence: tuple[str, ...]
    """Trial ids."""


def deploy_view(result: SweepResult, words: Words = ENGLISH) -> DeployView:
    advice = recommend(result)
    if advice.deployment is None or advice.chosen is None:
        return DeployView(words("deploy.nothing"), "", "", (), (), ())
    servers = attached(advice.deployment)
    key = "deploy.attached" if servers else "deploy.files"
    runs = [advice.chosen, *([] if advice.confirmation is None else [advice.confirmation])]
    if advice.schedule is not None:
        runs += schedule_trials(result, advice.schedule)
    environment = result.manifest.get("environment") or {}
    return DeployView(
        text=words(key, file=DEPLOY_FILE, decision=DECISION_FILE),
        command="" if servers else vllm_serve(advice.deployment),
        schedule=_schedule(advice, words),
        guard=() if advice.guard is None else tuple(_limits(advice.guard, words)),
        expires=tuple(
            (fact.name, _plain(fact.value))
            for fact in facts_of(environment, models_of(result, advice))
            if fact.value not in (None, [])
        ),
        evidence=tuple(dict.fromkeys(run.trial.id for run in runs)),
    )


def _schedule(advice: Recommendation, words: Words) -> str:
    if advice.schedule is None:
        return ""
    ranges = tuple(
        words("deploy.range", first=first, last=last, length=length)
        for first, last, length in advice.schedule.ranges
    )
    state = {True: "verified", False: "refused", None: "open"}[advice.schedule_verified]
    return words("deploy.schedule", ranges=ranges, state=words(f"deploy.schedule_{state}"))


def _limits(guard: Guard, words: Words) -> Iterator[tuple[str, str]]:
    unknown = words("fact.unknown")
    for name in ("acceptance_length_min", "acceptance_rate_min"):
        value = getattr(guard, name)
        yield words(f"deploy.{name}"), unknown if value is None else f"{value:.2f}"
    origin = words(f"deploy.from_{guard.latency_from}")
    for name, bound in guard.latency_max_s.items():
        metric, statistic, _ = name.split("_")
        what = words("figure.statistic", of=words(f"figure.{metric}_s"), statistic=statistic)
        yield words("deploy.at_most", what=what), f"{bound * 1e3:,.4g} ms ({origin})"
    load = guard.load_max
    key = "cell.in_flight" if guard.load_unit == "in_flight" else "cell.rps"
    yield words("deploy.load_max"), unknown if load is None else words(key, n=f"{load:.3g}")


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def deploy_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Markdown: what to serve and how, the limits, what voids it."""
    if not result.trials:
        return
    view = deploy_view(result, words)
    yield f"## {words('page.deploy')}"
    yield ""
    yield view.text
    yield ""
    if view.command:
        yield from ("```", view.command, "```", "")
    if view.schedule:
        yield view.schedule
        yield ""
    for heading, lines in (("deploy.guard", view.guard), ("deploy.expires", view.expires)):
        if lines:
            yield words(heading, decision=DECISION_FILE)
            yield ""
            yield from (f"- {name}: {value}" for name, value in lines)
            yield ""
