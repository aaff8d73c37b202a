"""Reads a decision file back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.decide.expiry import Fact
from orchestrator.decide.side import Side, side_from
from orchestrator.errors import Fault, SpecError

SCHEMA = 1


@dataclass(frozen=True)
class DecisionDocument:
    """What `check` and `compare` need of it."""

    advice: str
    simulated: bool
    sweep: str
    target: str | None
    draft: str | None
    expires_with: tuple[Fact, ...]
    side: Side


def read_decision(path: Path) -> DecisionDocument:
    """Raises: SpecError when it is no decision file, or one of another version."""

    def fault(rule: str, value: object = None) -> SpecError:
        hint = "python -m orchestrator report SWEEP writes one into the sweep's folder"
        shown = None if value is None else str(value)
        return SpecError([Fault(str(path), None, "", rule, shown, hint)])

    try:
        plain: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise fault("must be a decision file that can be read", error) from None
    if not isinstance(plain, Mapping) or plain.get("schema") != SCHEMA:
        schema = plain.get("schema") if isinstance(plain, Mapping) else None
        raise fault(f"must be a decision file of schema {SCHEMA}", schema)
    try:
        configuration = plain["configuration"] or {}
        speculation = configuration.get("speculation") or {}
        side = side_from(plain["kept"])
        return DecisionDocument(
            advice=plain["advice"],
            simulated=plain["simulated"],
            sweep=plain["sweep"]["name"],
            target=side.facts.get("target"),
            draft=speculation.get("draft"),
            expires_with=tuple(Fact(f["fact"], f["value"]) for f in plain["expires_with"]),
            side=side,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise fault("is damaged", f"{type(error).__name__}: {error}") from None
