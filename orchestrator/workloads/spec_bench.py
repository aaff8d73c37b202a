"""Spec-Bench: `question_id`, `category`, `turns`, and for some a `reference`.

Source: Xia et al., "Unlocking Efficiency in LLM Inference", 2401.07851 (`question.jsonl`).
"""

from __future__ import annotations

from typing import Any

from orchestrator.plan.block import Prompt
from orchestrator.workloads.conversation import build_prompt
from orchestrator.workloads.reading import Reading, Row


def read_spec_bench(row: Row, reading: Reading) -> Prompt | None:
    """The prompt with every turn kept as a turn."""
    missing = [key for key in ("question_id", "category", "turns") if key not in row.fields]
    if missing:
        reading.fault(row, "", "must have question_id, category and turns", sorted(row.fields))
        return None
    turns = row.fields["turns"]
    if not isinstance(turns, list):
        reading.fault(row, "turns", "must be a list of texts", turns)
        return None
    return build_prompt(
        row,
        reading,
        identifier=row.fields["question_id"],
        category=row.fields["category"],
        turns=turns,
        turns_key="turns",
        reference=_reference(row.fields.get("reference")),
    )


def _reference(value: Any) -> list[Any] | None:
    if value is None:
        return None
    answers = value if isinstance(value, list) else [value]
    # Questions with several accepted answers list them per turn; one is enough as a reference.
    return [answer[0] if isinstance(answer, list) and answer else answer for answer in answers]
