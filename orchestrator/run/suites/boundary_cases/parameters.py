"""Sampling parameters on the edge of what they may be, and past it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orchestrator.run.suites.boundary_cases.case import BoundaryCase, Must, completion, one

SEED = 20_011

VALUES: tuple[tuple[str, Must, dict[str, Any]], ...] = (
    ("temperature_0", "answer", {"temperature": 0}),
    ("temperature_1e-6", "answer", {"temperature": 1e-6}),
    ("temperature_2", "answer", {"temperature": 2}),
    ("temperature_100", "either", {"temperature": 100}),
    ("temperature_negative", "refuse", {"temperature": -1}),
    ("temperature_huge", "either", {"temperature": 1e308}),
    ("temperature_denormal", "either", {"temperature": 5e-324}),
    ("temperature_nan", "either", {"temperature": float("nan")}),
    ("temperature_infinite", "either", {"temperature": float("inf")}),
    ("top_p_0", "either", {"temperature": 1, "top_p": 0}),
    ("top_p_1e-9", "answer", {"temperature": 1, "top_p": 1e-9}),
    ("top_p_negative", "refuse", {"temperature": 1, "top_p": -0.5}),
    ("top_p_above_1", "refuse", {"temperature": 1, "top_p": 1.5}),
    ("min_p_1", "answer", {"temperature": 1, "min_p": 1}),
    ("min_p_negative", "refuse", {"temperature": 1, "min_p": -1}),
    ("min_p_above_1", "refuse", {"temperature": 1, "min_p": 2}),
    ("top_k_1", "answer", {"temperature": 1, "top_k": 1}),
    ("top_k_0", "either", {"temperature": 1, "top_k": 0}),
    ("top_k_negative", "either", {"temperature": 1, "top_k": -5}),
    ("top_k_huge", "either", {"temperature": 1, "top_k": 2**31}),
    ("max_tokens_0", "either", {"max_tokens": 0}),
    ("max_tokens_negative", "refuse", {"max_tokens": -1}),
    ("max_tokens_huge", "either", {"max_tokens": 2**62, "stop": [" ", "\n", "a", "e"]}),
    ("min_tokens_above_max", "refuse", {"min_tokens": 9, "max_tokens": 8}),
    ("n_0", "refuse", {"n": 0}),
    ("n_negative", "refuse", {"n": -1}),
    ("n_absurd", "refuse", {"n": 2**31, "max_tokens": 1, "temperature": 1}),
    ("n_100", "either", {"n": 100, "max_tokens": 1, "temperature": 1}),
    ("repetition_penalty_0", "refuse", {"repetition_penalty": 0}),
    ("repetition_penalty_tiny", "answer", {"repetition_penalty": 1e-9}),
    ("repetition_penalty_huge", "either", {"repetition_penalty": 1e30}),
    ("presence_penalty_edges", "answer", {"presence_penalty": 2, "frequency_penalty": -2}),
    ("presence_penalty_beyond", "refuse", {"presence_penalty": 99}),
    ("seed_negative", "either", {"temperature": 1, "seed": -1}),
    ("seed_huge", "either", {"temperature": 1, "seed": 10**30}),
    ("logprobs_negative", "either", {"logprobs": -1}),
    ("logprobs_huge", "refuse", {"logprobs": 10**6}),
    ("logit_bias_extreme", "answer", {"logit_bias": {"5": 100, "6": -100}}),
    ("logit_bias_beyond_vocabulary", "either", {"logit_bias": {"2000000000": 1}}),
    ("stop_empty_text", "either", {"stop": ""}),
    ("stop_many", "either", {"stop": [f"stop {i}" for i in range(500)]}),
    ("stop_token_ids_beyond_vocabulary", "either", {"stop_token_ids": [-7, 2**31 - 1]}),
    ("allowed_token_ids_none", "either", {"allowed_token_ids": []}),
    ("bad_words_empty", "either", {"bad_words": [""]}),
)


def cases() -> Iterator[BoundaryCase]:
    for name, must, fields in VALUES:
        # A case that samples is given a seed, so that asking again is asking the same.
        seeded = {"seed": SEED, **fields} if fields.get("temperature") else fields
        yield one(name, must, partial(completion, prompt="The capital of France is", **seeded))
