"""What no well-behaved client sends, as data: `every_case` yields all of it for one target."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.run.suites.boundary_cases import (
    clients,
    lengths,
    loops,
    malformed,
    parameters,
    texts,
    token_ids,
)
from orchestrator.run.suites.boundary_cases.case import BoundaryCase
from orchestrator.run.suites.boundary_cases.target import Target


def every_case(target: Target, *, disconnects: int, flood: int) -> Iterator[BoundaryCase]:
    """All cases, what has ended engines before comes last: a restart costs the time of many cases.

    `disconnects`: how many clients vanish in `disconnect_thousands`; `flood`: requests at once.
    """
    yield from texts.cases(target)
    yield from malformed.cases()
    yield from parameters.cases()
    yield from token_ids.cases(target)
    yield from loops.cases(target)
    yield from lengths.cases(target)
    yield from clients.cases(target, disconnects=disconnects, flood=flood)
    yield from lengths.seeded_cases(target)
