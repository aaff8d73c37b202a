"""Is greedy output the same in both arms? A few fresh prompts, before and after something."""

from __future__ import annotations

from orchestrator.plan.fresh import FreshRequests
from orchestrator.run.suites.completion import chat_ask, completion_of
from orchestrator.run.suites.suite import Bench

PROMPTS = 4
TOKENS = 16
INDEX = 2**40
"""Far from what the load sends: these prompts are nobody else's."""


def equal_answers(bench: Bench, requests: FreshRequests, number: int, when: str) -> list[int]:
    """[equal, of]: greedy answers that both arms gave; one that an arm did not give counts for
    nothing."""
    begin = INDEX + PROMPTS * number
    planned = [requests.request(begin + i).planned for i in range(PROMPTS)]
    answers = {}
    for arm in ("baseline", "speculative"):
        asks = [
            chat_ask(
                bench.model(arm), one.prompt, {"max_tokens": TOKENS, "temperature": 0, "seed": 1}
            )
            for one in planned
        ]
        endpoint = bench.subjects.endpoint(arm)
        answers[arm] = [completion_of(answer) for answer in bench.asker.ask(endpoint, asks)]
    pairs = [
        (one, other)
        for one, other in zip(answers["baseline"], answers["speculative"], strict=True)
        if one is not None and other is not None
    ]
    return [sum(one.text == other.text for one, other in pairs), len(pairs)]
