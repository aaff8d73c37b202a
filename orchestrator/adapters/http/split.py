"""One block among several client processes, and their observations back into one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.adapters.http.health import worst
from orchestrator.plan.block import BlockPlan
from orchestrator.ports import BlockObservation


def split_block(block: BlockPlan, workers: int) -> list[BlockPlan]:
    """At most `workers` blocks that make up `block`; none is empty, unless `block` is.

    Open loop: request i goes to worker i mod n. Closed loop: the slots are dealt out first, then
    request i to the worker that has slot i mod concurrency, so that every slot gets as many.
    """
    load, requests = block.load, block.requests
    slots = min(load.concurrency or 1, len(requests)) if load.mode == "closed" else len(requests)
    count = max(1, min(workers, slots))
    if count == 1:
        return [block]
    parts = []
    for worker in range(count):
        mine = tuple(each for i, each in enumerate(requests) if (i % slots) % count == worker)
        share = load
        if load.mode == "closed":
            share = replace(load, concurrency=len(range(worker, slots, count)))
        parts.append(replace(block, requests=mine, load=share))
    return parts


def join_observations(
    block: BlockPlan, observations: Sequence[BlockObservation]
) -> BlockObservation:
    """One observation in the block's own order. All must share one start; health is the worst."""
    if len(observations) == 1:
        return observations[0]
    order = {request.request_id: i for i, request in enumerate(block.requests)}
    records = [record for part in observations for record in part.requests]
    records.sort(key=lambda record: (order[record.request_id], record.turn))
    return BlockObservation(
        started_unix_s=observations[0].started_unix_s,
        duration_s=max(part.duration_s for part in observations),
        requests=tuple(records),
        client=worst([part.client for part in observations]),
        ended_early=next((part.ended_early for part in observations if part.ended_early), None),
    )
