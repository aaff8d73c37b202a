"""Different settings in flight together."""

from __future__ import annotations

from orchestrator.analyse.suites.functional_checks.constraints import chosen
from orchestrator.analyse.suites.functional_checks.seen import Seen, answered, must, single


def each_as_it_asks(seen: Seen) -> str:
    """What does not hang on how a batch is put together; that is compared between the arms."""
    for part in seen:
        answered(part)
    single(seen["one"])
    stop = seen["stopped"].body["stop"][0]
    must(stop not in seen["stopped"].said.text, f"stopped: {stop!r} is in the answer")
    chosen(seen["constrained"])
    return f"{len(seen.parts)} answers"
