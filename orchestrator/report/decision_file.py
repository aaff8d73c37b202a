"""`decision.json`: what to deploy, on what it rests, and what voids it; `deploy.yaml` beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.decide.conditions import conditions_of, confidence_of
from orchestrator.decide.decision_document import SCHEMA
from orchestrator.decide.expiry import facts_of
from orchestrator.decide.guard import guard_as_plain
from orchestrator.decide.recommendation import Recommendation, recommend
from orchestrator.decide.schedule import schedule_trials
from orchestrator.decide.side import side_as_plain, side_of
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import LANGUAGES, Words
from orchestrator.report.serve_config import (
    DECISION_FILE,
    DEPLOY_FILE,
    attached,
    models_of,
    serve_config,
    speculative_config,
    vllm_serve,
)
from orchestrator.store.atomic import write_atomically, write_json

__all__ = ["DECISION_FILE", "DEPLOY_FILE", "decision_document", "write_decision"]


def write_decision(result: SweepResult, folder: Path) -> Recommendation:
    """Write `decision.json`, and `deploy.yaml` where there is something to deploy, else remove it.

    Raises: StoreError.
    """
    advice = recommend(result)
    write_json(folder / DECISION_FILE, decision_document(result, advice))
    path = folder / DEPLOY_FILE
    if advice.deployment is None or attached(advice.deployment):
        path.unlink(missing_ok=True)
        return advice
    assert advice.chosen is not None
    text = serve_config(
        advice.deployment,
        name=DEPLOY_FILE,
        notes=(
            f"From sweep {result.name}: {Words('en').message(advice.reason)}",
            *(["SIMULATED: nothing was measured."] if result.simulated else []),
            f"What voids it: python -m orchestrator check {DECISION_FILE}",
        ),
        fallback=advice.chosen.trial.pair.baseline,
    )
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return advice


def decision_document(result: SweepResult, advice: Recommendation) -> dict[str, Any]:
    """Plain JSON; docs/decision.md says what each key holds."""
    manifest = result.manifest
    return {
        "schema": SCHEMA,
        "sweep": {
            "name": result.name,
            "sweep_id": manifest.get("sweep_id"),
            "created_unix_s": manifest.get("created_unix_s"),
        },
        "simulated": result.simulated,
        "advice": str(advice.advice),
        "reason": {language: Words(language).message(advice.reason) for language in LANGUAGES},
        "configuration": _configuration(result, advice),
        "measured": _measured(result, advice),
        "schedule": _schedule(result, advice),
        "guard": None if advice.guard is None else guard_as_plain(advice.guard),
        "expires_with": [
            {"fact": fact.name, "value": fact.value}
            for fact in facts_of(manifest.get("environment") or {}, models_of(result, advice))
        ],
        "kept": side_as_plain(side_of(result)),
    }


def _configuration(result: SweepResult, advice: Recommendation) -> dict[str, Any] | None:
    deployment = advice.deployment
    if deployment is None:
        return None
    return {
        **deployment.as_dict(),
        "speculative_config": speculative_config(deployment),
        "serve_config": None if attached(deployment) else DEPLOY_FILE,
        "vllm_serve": None if attached(deployment) else vllm_serve(deployment),
    }


def _measured(result: SweepResult, advice: Recommendation) -> dict[str, Any] | None:
    chosen = advice.chosen
    if chosen is None:
        return None
    shown = chosen if advice.confirmation is None else advice.confirmation
    confidence = confidence_of(result, [shown])
    conditions = conditions_of(result, [chosen])
    return {
        "cell": chosen.trial.cell.label(),
        "trial": chosen.trial.id,
        "confirmation": None if advice.confirmation is None else advice.confirmation.trial.id,
        "metric": chosen.trial.protocol.metric,
        "speedup": None if confidence is None else confidence.speedup,
        "low": None if confidence is None else confidence.low,
        "high": None if confidence is None else confidence.high,
        "confidence": chosen.trial.protocol.confidence,
        "pairs": None if confidence is None else confidence.pairs,
        "control": None if confidence is None else confidence.control,
        "conditions": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(conditions).items()
        },
    }


def _schedule(result: SweepResult, advice: Recommendation) -> dict[str, Any] | None:
    schedule = advice.schedule
    if schedule is None:
        return None
    return {
        "ranges": schedule.as_option(),
        "measured_at": {str(level): length for level, length in schedule.by_level.items()},
        "verified": advice.schedule_verified,
        "trials": [trial.trial.id for trial in schedule_trials(result, schedule)],
    }
