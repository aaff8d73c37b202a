"""One answer, step by step, of an engine whose steps all take the same time."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.records import BlockRecord, RequestRecord
from tests.measure.test_stages import block, sums

_STEPS = 60


def block_of(length: int, step_s: float, accepted: float) -> BlockRecord:
    """A block of one request in flight; `accepted` draft tokens a step on average."""
    gained = [int(accepted * (n + 1)) - int(accepted * n) for n in range(_STEPS)]
    chunks = (0.1, *(0.1 + step_s * (n + 1) for n in range(_STEPS)))
    tokens = (1, *(1 + each for each in gained))
    request = RequestRecord(
        request_id="r", prompt_id="p", category="c", turn=0, offset_s=None, sent_s=0.0,
        chunk_s=chunks, chunk_tokens=tokens, end_s=chunks[-1], input_tokens=8,
        output_tokens=sum(tokens), max_tokens=sum(tokens), finish_reason="length", text="",
    )  # fmt: skip
    timed = sums(1, 64, k=length, steps=_STEPS, step_s=step_s * _STEPS)
    made = block((), (timed,), accepted=float(sum(gained)))
    drafts = float(_STEPS) if length else None
    after = made.counters_after
    assert after is not None
    return replace(made, requests=(request,), counters_after=replace(after, drafts=drafts))
