"""Prompts given as token ids, past the vocabulary's edges."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orchestrator.run.suites.boundary_cases.case import BoundaryCase, completion, one
from orchestrator.run.suites.boundary_cases.target import Target


def cases(target: Target) -> Iterator[BoundaryCase]:
    prompts: list[tuple[str, Any]] = [
        ("token_id_negative", [-1, 5]),
        ("token_id_beyond_int32", [2**31]),
        ("token_id_beyond_int64", [2**63]),
        ("token_ids_empty", []),
    ]
    if target.vocab_size is not None:
        prompts.append(("token_id_beyond_vocabulary", [target.vocab_size]))
    for name, prompt in prompts:
        yield one(name, "refuse", partial(completion, prompt=prompt))
    if target.vocab_size is not None:
        last = target.vocab_size - 1
        yield one("token_id_last", "either", lambda m: completion(m, [last] * 4))
