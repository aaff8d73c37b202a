"""Prompts around the longest sequence that the engine takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from orchestrator.ports import Ask
from orchestrator.run.suites.boundary_cases.case import (
    LONG_TIMEOUT_S,
    BoundaryCase,
    Must,
    completion,
    one,
)
from orchestrator.run.suites.boundary_cases.target import Target

LARGEST_USUAL_BUDGET = 8192
"""Tokens a step takes where the engine chooses `max_num_batched_tokens`: vLLM's defaults are 2048
and more, by device."""


def cases(target: Target) -> Iterator[BoundaryCase]:
    """Prompt + answer at the limit −1, 0, +1 and far past it, and answers that run into it.

    A drafter that proposes K tokens near the limit reaches past it: the last answers are the ones
    where a speculative engine differs.
    """
    limit = target.max_model_len
    if limit is None:
        return
    lengths: tuple[tuple[str, int, Must], ...] = (
        ("prompt_at_limit_minus_1", limit - 2, "answer"),
        ("prompt_at_limit", limit - 1, "answer"),
        ("prompt_at_limit_plus_1", limit, "refuse"),
        ("prompt_past_limit", limit + 1, "refuse"),
        ("prompt_far_past_limit", 4 * limit + 1, "refuse"),
    )
    for name, tokens, must in lengths:
        yield one(name, must, partial(_of_length, target=target, tokens=tokens))
    room = min(12, limit // 2)
    yield one(
        "answer_to_limit",
        "answer",
        partial(_of_length, target=target, tokens=limit - room, max_tokens=room),
    )
    # Some servers refuse, some shorten what was asked for to what fits.
    yield one(
        "answer_past_limit",
        "either",
        partial(_of_length, target=target, tokens=limit - room, max_tokens=room + 1),
    )
    yield BoundaryCase(
        "answers_to_limit_together",
        "answer",
        lambda m: tuple(_of_length(m, target, limit - room - i, room + i) for i in range(4)),
        parts=tuple(f"room_{room + i}" for i in range(4)),
        in_flight=4,
    )


def seeded_cases(target: Target) -> Iterator[BoundaryCase]:
    """Sampled with a seed of its own while the prefill is split over steps (chunked prefill)."""
    limit = target.max_model_len
    if limit is None:
        return
    tokens = max(1, limit - 16)
    budget = target.max_num_batched_tokens or LARGEST_USUAL_BUDGET
    together = max(4, min(16, 2 * budget // tokens))
    yield BoundaryCase(
        "seeded_split_prefill",
        "answer",
        lambda model: tuple(
            completion(
                model,
                target.mixed_ids(tokens, start=i),
                temperature=1,
                seed=i,
                timeout_s=LONG_TIMEOUT_S,
            )
            for i in range(together)
        ),
        parts=tuple(f"seed_{i}" for i in range(together)),
        in_flight=together,
        timed=False,
    )


def _of_length(model: str, target: Target, tokens: int, max_tokens: int = 1) -> Ask:
    return completion(
        model,
        target.mixed_ids(tokens),
        max_tokens=max_tokens,
        ignore_eos=True,
        timeout_s=LONG_TIMEOUT_S,
    )
