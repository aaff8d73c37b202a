"""`check`: whether the facts that a decision rests on still hold here.

Exit status: 0 every fact holds · 1 one has changed, or cannot be tested here · 2 no decision file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.adapters.local.environment import environment_snapshot
from orchestrator.decide.decision_document import DecisionDocument, read_decision
from orchestrator.decide.expiry import Checked, check_facts, facts_of
from orchestrator.errors import ModelUnavailable
from orchestrator.models.resolve import resolve

VOID = 1
_WORD = {
    True: "[green]holds[/]",
    False: "[bold red]changed[/]",
    None: "[yellow]not testable here[/]",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("decision", type=Path, metavar="DECISION.json")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--all", action="store_true", help="show the facts that hold as well")


def run(args: argparse.Namespace) -> int:
    decision = read_decision(args.decision)
    checked = check_facts(decision.expires_with, _present(decision))
    holds = all(fact.holds for fact in checked)
    if args.json:
        print(json.dumps({"holds": holds, "facts": [asdict(fact) for fact in checked]}, indent=1))
        return 0 if holds else VOID
    shown = [fact for fact in checked if args.all or not fact.holds]
    if shown:
        Console().print(_table(shown))
    if decision.simulated:
        print("The decision is of a SIMULATED sweep: nothing was measured.")
    if holds:
        print(f"All {len(checked)} facts hold: the decision of {decision.sweep} stands "
              f"({decision.advice}).")  # fmt: skip
        return 0
    changed = sum(fact.holds is False for fact in checked)
    print(
        f"The decision of {decision.sweep} is void here: {changed} of {len(checked)} facts have "
        f"changed, {sum(fact.holds is None for fact in checked)} cannot be tested here. "
        "Run the sweep again and compare."
    )
    return VOID


def _present(decision: DecisionDocument) -> list[Any]:
    environment = environment_snapshot(Path.cwd())
    models = {"target": _model(decision.target), "draft": _model(decision.draft)}
    return list(facts_of(environment, models))


def _model(name: str | None) -> Mapping[str, Any] | None:
    """The model as it is here now; a revision of None where it is not to be had offline."""
    if name is None:
        return None
    try:
        return {"name": name, "revision": resolve(name, offline=True).revision}
    except ModelUnavailable:
        return {"name": name, "revision": None}


def _table(facts: list[Checked]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("fact", "", "when measured", "here"):
        table.add_column(heading, overflow="fold")
    for fact in facts:
        table.add_row(fact.name, _WORD[fact.holds], _shown(fact.then), _shown(fact.now))
    return table


def _shown(value: Any) -> str:
    return "–" if value is None else str(value)
