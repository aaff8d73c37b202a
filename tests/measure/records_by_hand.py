"""Short ways to write down records in tests."""

from __future__ import annotations

from orchestrator.records import (
    Arm,
    BlockRecord,
    ClientHealth,
    CounterSnapshot,
    RequestError,
    RequestRecord,
    Sample,
)

HEALTHY = ClientHealth(0.001, 0.002, 0.001, 0.002, 0.2)


def request(
    chunk_s: tuple[float, ...] = (1.0, 2.0),
    chunk_tokens: tuple[int, ...] | None = (1, 1),
    *,
    id: str = "r0",
    turn: int = 0,
    sent_s: float | None = 0.0,
    offset_s: float | None = None,
    output_tokens: int | None = -1,
    input_tokens: int | None = 10,
    max_tokens: int | None = None,
    error: RequestError | None = None,
) -> RequestRecord:
    """`output_tokens` is the sum of the chunks unless given; `max_tokens` follows it."""
    total = sum(chunk_tokens or ()) if output_tokens == -1 else output_tokens
    return RequestRecord(
        request_id=id,
        prompt_id="p",
        category="c",
        turn=turn,
        offset_s=offset_s,
        sent_s=sent_s,
        chunk_s=chunk_s,
        chunk_tokens=chunk_tokens,
        end_s=chunk_s[-1] if chunk_s else None,
        input_tokens=input_tokens,
        output_tokens=total,
        max_tokens=(total or 0) if max_tokens is None else max_tokens,
        finish_reason=None if error else "length",
        text="",
        error=error,
    )


def block(
    *requests: RequestRecord,
    arm: Arm = "baseline",
    duration_s: float = 10.0,
    pair_index: int = 0,
    position: int = 0,
    client: ClientHealth = HEALTHY,
    before: CounterSnapshot | None = None,
    after: CounterSnapshot | None = None,
    samples: tuple[dict[str, float], ...] = (),
) -> BlockRecord:
    return BlockRecord(
        trial_id="t",
        pair_index=pair_index,
        arm=arm,
        position=position,
        kind="measured",
        started_unix_s=1e9,
        duration_s=duration_s,
        requests=requests,
        client=client,
        counters_before=before,
        counters_after=after,
        samples=tuple(Sample(float(i), values) for i, values in enumerate(samples)),
    )


def counters(**values: object) -> CounterSnapshot:
    return CounterSnapshot(at_unix_s=1e9, **{"replica_ids": ("a",), **values})  # type: ignore[arg-type]
