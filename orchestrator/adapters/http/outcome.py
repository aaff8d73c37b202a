"""From what a connection recorded to the record of a request. Pure."""

from __future__ import annotations

import orjson

from orchestrator.adapters.http.answer import Answer, error_message, read_answer
from orchestrator.adapters.http.connection import Exchange
from orchestrator.adapters.http.sse import read_events
from orchestrator.plan.block import PlannedRequest
from orchestrator.records import RequestError, RequestRecord


def answer_of(exchange: Exchange) -> Answer:
    """Everything the body says so far; times on the monotonic clock."""
    if exchange.status is None or not 200 <= exchange.status < 300:
        return Answer()
    return read_answer(read_events(exchange.body, complete=exchange.complete))


def fault_of(exchange: Exchange, answer: Answer) -> tuple[RequestError | None, str | None]:
    """Why the request did not complete; (None, None) if it did.

    What the server said in the stream explains more than how the connection ended, so an error
    event comes first; a status of 4xx or 5xx comes before a body cut short.
    """
    status = exchange.status
    if status is not None and not 200 <= status < 300:
        return RequestError.HTTP_STATUS, f"HTTP {status}: {_body_text(exchange)}"
    if answer.error is not None:
        return answer.error, answer.error_text
    if exchange.error is not None:
        # Everything had come; only the connection's end was untidy.
        if answer.done and exchange.error in (RequestError.RESET, RequestError.TRUNCATED):
            return None, None
        return exchange.error, exchange.error_text
    if not exchange.content_type.startswith("text/event-stream"):
        return (
            RequestError.PROTOCOL,
            f"expected content-type text/event-stream, got {exchange.content_type!r}: "
            f"{_body_text(exchange)}",
        )
    if not answer.done:
        return RequestError.TRUNCATED, "stream ended without [DONE] or a finish reason"
    return None, None


def record_of(
    planned: PlannedRequest, turn: int, exchange: Exchange, answer: Answer, start_s: float
) -> RequestRecord:
    """The record, with times relative to the block's start (`start_s`, monotonic)."""
    error, error_text = fault_of(exchange, answer)
    return RequestRecord(
        request_id=planned.request_id,
        prompt_id=planned.prompt.id,
        category=planned.prompt.category,
        turn=turn,
        offset_s=planned.offset_s if turn == 0 else None,
        sent_s=None if exchange.sent_s is None else exchange.sent_s - start_s,
        chunk_s=tuple(at_s - start_s for at_s in answer.chunk_s),
        chunk_tokens=answer.chunk_tokens,
        end_s=None if exchange.end_s is None else exchange.end_s - start_s,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        max_tokens=planned.max_tokens,
        finish_reason=answer.finish_reason,
        text=answer.text,
        token_ids=answer.token_ids,
        tokens_from=answer.tokens_from,
        http_status=exchange.status,
        error=error,
        error_text=error_text,
    )


def _body_text(exchange: Exchange) -> str:
    body = b"".join(piece for _, piece in exchange.body)
    try:
        return error_message(orjson.loads(body))
    except orjson.JSONDecodeError:
        return error_message(body.decode("utf-8", "replace"))
