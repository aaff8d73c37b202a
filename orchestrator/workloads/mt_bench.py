"""MT-Bench: `question_id`, `category`, two `turns`, and for some a `reference` per turn.

Source: Zheng et al., "Judging LLM-as-a-Judge", 2306.05685 (`question.jsonl`). The record has the
same shape as Spec-Bench's, which took it over; only the categories tell the two apart.
"""

from __future__ import annotations

from orchestrator.plan.block import Prompt
from orchestrator.workloads.reading import Reading, Row
from orchestrator.workloads.spec_bench import read_spec_bench

CATEGORIES = frozenset(
    {"writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"}
)


def read_mt_bench(row: Row, reading: Reading) -> Prompt | None:
    """The prompt; a category that MT-Bench does not have is a fault."""
    prompt = read_spec_bench(row, reading)
    if prompt is not None and prompt.category not in CATEGORIES:
        reading.fault(
            row,
            "category",
            f"must be one of MT-Bench's ({', '.join(sorted(CATEGORIES))})",
            prompt.category,
            "read the file with format: spec-bench",
        )
        return None
    return prompt
