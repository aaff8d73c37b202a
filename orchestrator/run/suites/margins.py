"""The second pass: how clear was the target's choice where two greedy answers part?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.ports import Ask
from orchestrator.run.suites.asking import Attendant
from orchestrator.run.suites.completion import ANSWER_TIMEOUT_S, Completion, first_divergence
from orchestrator.run.suites.openai import completion, read
from orchestrator.run.suites.record import Subject

LOGPROBS = 20
"""As many as vLLM gives by default (`max_logprobs`)."""
PIECE = 8
_ID = "token_id:"
"""How vLLM writes a token with `return_tokens_as_token_ids`."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Two answers to one prompt."""

    prompt_id: str
    baseline: Completion
    other: Completion


@dataclass(frozen=True, slots=True)
class _Fork:
    prompt_id: str
    prefix: tuple[int, ...]
    baseline_token: int
    other_token: int


def read_margins(
    attendant: Attendant, name: str, partings: Sequence[Parting], subject: Subject = "baseline"
) -> dict[str, dict[str, Any]]:
    """Log-probabilities, by prompt, of the two tokens at the first divergence; plain JSON.

    `subject`, the baseline or its relaunched copy, is given the prompt and the common part of the
    two answers as token ids and asked for one more token with its 20 best log-probabilities. Never
    in the first pass: asking for log-probabilities can itself change what is generated.

    A token that is not among the 20 gets the lowest of them, an upper bound, and
    `other_at_most` or `baseline_at_most` says so. Without token ids, or where one answer had ended,
    a prompt has no entry: its divergence stays untriaged.
    """
    forks = [fork for parting in partings if (fork := _fork(parting)) is not None]
    found: dict[str, dict[str, Any]] = {}
    if not forks or subject in attendant.given_up:
        return found
    model = attendant.bench.model(subject)
    for start in range(0, len(forks), PIECE):
        some = forks[start : start + PIECE]
        answers = attendant.put(
            f"margins {name}",
            subject,
            [_ask(model, fork) for fork in some],
            parts=[fork.prompt_id for fork in some],
        )
        for fork, answer in zip(some, answers, strict=False):
            best = _best(read(answer).first.logprobs)
            if best:
                found[fork.prompt_id] = _margin(fork, best)
    return found


def _fork(parting: Parting) -> _Fork | None:
    mine, its = parting.baseline.token_ids, parting.other.token_ids
    prompt = parting.baseline.prompt_token_ids
    if mine is None or its is None or prompt is None:
        return None
    at = first_divergence(mine, its)
    if at is None or at >= min(len(mine), len(its)):
        return None
    return _Fork(parting.prompt_id, (*prompt, *mine[:at]), mine[at], its[at])


def _ask(model: str, fork: _Fork) -> Ask:
    fields = {
        "max_tokens": 1,
        "temperature": 0.0,
        "logprobs": LOGPROBS,
        "return_tokens_as_token_ids": True,
    }
    return replace(completion(model, fork.prefix, **fields), timeout_s=ANSWER_TIMEOUT_S)


def _best(logprobs: Any) -> dict[int, float]:
    """Token id -> log-probability of the first token; {} where the answer holds none."""
    listed = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    if not listed or not isinstance(listed[0], dict):
        return {}
    return {
        int(token.removeprefix(_ID)): float(logprob)
        for token, logprob in listed[0].items()
        if token.startswith(_ID) and token.removeprefix(_ID).isdigit()
    }


def _margin(fork: _Fork, best: dict[int, float]) -> dict[str, Any]:
    lowest = min(best.values())
    return {
        "baseline_logprob": best.get(fork.baseline_token, lowest),
        "other_logprob": best.get(fork.other_token, lowest),
        "top_logprob": max(best.values()),
        "baseline_at_most": fork.baseline_token not in best,
        "other_at_most": fork.other_token not in best,
    }
