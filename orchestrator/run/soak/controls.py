"""What is done to the engines at a soak's end."""

from __future__ import annotations

from orchestrator.ports import Ask
from orchestrator.records import ARMS
from orchestrator.run.suites.suite import Bench

RESET = "/reset_prefix_cache"


def flushed(bench: Bench) -> str | None:
    """Empties both arms' prefix caches. Why it cannot be done; None: it was."""
    for arm in ARMS:
        ask = Ask(path=RESET, method="POST", headers=(), timeout_s=30.0)
        (answer,) = bench.asker.ask(bench.subjects.endpoint(arm), [ask])
        if answer.status != 200:
            said = answer.status if answer.error is None else answer.error.value
            return (
                f"POST {RESET} is answered with {said} by the {arm} server; vLLM has it with "
                "VLLM_SERVER_DEV_MODE=1"
            )
    return None
