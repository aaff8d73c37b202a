"""Log-probabilities of answers and prompts."""

from __future__ import annotations

from orchestrator.analyse.suites.functional_checks.seen import TIE, Seen, answered, must, told
from orchestrator.analyse.suites.functional_checks.text import answers


def logprobs_of_every_token(seen: Seen) -> str:
    answers(seen)
    count = 0
    for part in seen:
        found = list(told(part))
        wanted = part.completion_tokens
        must(
            bool(found) and (wanted is None or len(found) == wanted),
            f"{part.name}: {len(found)} log-probabilities for {wanted} tokens",
        )
        for index, (logprob, best) in enumerate(found):
            must(logprob <= 1e-6, f"{part.name}: token {index} has {logprob:.3f}, above 0")
            must(
                best is None or logprob >= best - TIE,
                f"{part.name}: token {index} has {logprob:.3f}, another one {best}: at temperature "
                "0 it must be the highest",
            )
        count += len(found)
    return f"{count} log-probabilities"


def logprobs_of_the_prompt(seen: Seen) -> str:
    for part in seen:
        answered(part)
        body = part.said.body or {}
        given = body.get("prompt_logprobs") or (body.get("choices") or [{}])[0].get(
            "prompt_logprobs"
        )
        must(isinstance(given, list), f"{part.name}: there are none")
        wanted = part.prompt_tokens
        must(
            len(given) == wanted,
            f"{part.name}: {len(given)} log-probabilities for {wanted} prompt tokens",
        )
        must(given[0] is None, f"{part.name}: the first token has one")
        for index, entry in enumerate(given[1:], 1):
            values = [item["logprob"] for item in (entry or {}).values()]
            must(bool(values) and max(values) <= 1e-6, f"{part.name}: token {index} has {values}")
    return "as many as prompt tokens"
