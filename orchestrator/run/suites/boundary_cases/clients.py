"""Clients that are slow, that vanish, that come all at once, or call themselves the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from orchestrator.ports import Ask
from orchestrator.run.suites.boundary_cases.case import (
    LONG_TIMEOUT_S,
    BoundaryCase,
    completion,
    one,
)
from orchestrator.run.suites.boundary_cases.target import Target

PER_ROUND = 250
VANISHING_AT_ONCE = 32
STREAMED_TOKENS = 64


def cases(target: Target, *, disconnects: int, flood: int) -> Iterator[BoundaryCase]:
    yield one(
        "slow_sender",
        "either",
        lambda m: replace(completion(m, "word " * 200), send_bytes_per_s=400.0),
        timed=False,
    )
    yield one("slow_reader", "answer", _slow_reader, timed=False)
    for name, events in (("head", 0), ("first_token", 1), ("mid_stream", 5)):
        yield BoundaryCase(
            f"disconnect_at_{name}",
            "answer",
            partial(_vanishing_together, after_events=events),
            parts=tuple(f"client_{i}" for i in range(4)),
            in_flight=4,
            timed=False,
        )
    yield BoundaryCase(
        "disconnect_while_waiting",
        "answer",
        lambda m: tuple(
            replace(completion(m, f"{i} " * 100, max_tokens=STREAMED_TOKENS), abandon_after_s=0.1)
            for i in range(4)
        ),
        parts=tuple(f"client_{i}" for i in range(4)),
        in_flight=4,
        timed=False,
    )
    rounds = max(1, -(-disconnects // PER_ROUND))
    clients = min(disconnects, PER_ROUND)
    yield BoundaryCase(
        "disconnect_thousands",
        "answer",
        lambda m: tuple(_vanishing(m, after_events=i % 3, client=i) for i in range(clients)),
        parts=tuple(f"client_{i}" for i in range(clients)),
        in_flight=VANISHING_AT_ONCE,
        rounds=rounds,
        timed=False,
    )
    yield BoundaryCase(
        "duplicate_ids",
        "either",
        lambda m: (_named(m, "duplicate"),) * 4,
        parts=tuple(f"copy_{i}" for i in range(4)),
        in_flight=4,
        timed=False,
    )
    yield BoundaryCase(
        "flood",
        "either",
        lambda m: tuple(
            completion(m, f"Request {i} says", max_tokens=2, timeout_s=LONG_TIMEOUT_S)
            for i in range(flood)
        ),
        parts=tuple(f"client_{i}" for i in range(flood)),
        in_flight=flood,
        timed=False,
    )


def _slow_reader(model: str) -> Ask:
    ask = completion(model, "Count from one to twenty:", max_tokens=STREAMED_TOKENS, stream=True,
                     ignore_eos=True, timeout_s=LONG_TIMEOUT_S)  # fmt: skip
    return replace(ask, read_bytes_per_s=4_000.0)


def _vanishing_together(model: str, *, after_events: int) -> tuple[Ask, ...]:
    return tuple(_vanishing(model, after_events=after_events, client=i) for i in range(4))


def _vanishing(model: str, *, after_events: int, client: int = 0) -> Ask:
    ask = completion(model, f"Tell the story of traveller {client}, at length:", stream=True,
                     max_tokens=STREAMED_TOKENS, ignore_eos=True)  # fmt: skip
    return replace(ask, abandon_after_events=after_events)


def _named(model: str, name: str) -> Ask:
    ask = completion(model, "Say your name:", max_tokens=16, request_id=name, ignore_eos=True)
    return replace(ask, headers=(*ask.headers, ("X-Request-Id", name)))
