"""Clients whose records hold no key, whatever the server sent back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.adapters.attached.access import Access
from orchestrator.plan.block import BlockPlan
from orchestrator.ports import Answer, Ask, Asker, BlockObservation, Endpoint, LoadClient
from orchestrator.records import RequestRecord


class RedactedClient:
    """Implements ports.LoadClient over another one. Servers do quote the key in their errors."""

    def __init__(self, client: LoadClient, access: Access) -> None:
        self._client, self._access = client, access

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        seen = self._client.run_block(endpoint, block)
        requests = tuple(redacted(record, self._access) for record in seen.requests)
        return replace(seen, requests=requests)

    def close(self) -> None:
        self._client.close()


def redacted(record: RequestRecord, access: Access) -> RequestRecord:
    """The record with the key masked, wherever the server quoted it."""
    text = access.masked(record.text)
    error_text = access.masked(record.error_text)
    if text == record.text and error_text == record.error_text:
        return record
    return replace(record, text=text, error_text=error_text)


class RedactedAsker:
    """Implements ports.Asker over another one."""

    def __init__(self, asker: Asker, access: Access) -> None:
        self._asker, self._access = asker, access

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        answers = self._asker.ask(endpoint, asks, in_flight=in_flight)
        return [self._redacted(answer) for answer in answers]

    def _redacted(self, answer: Answer) -> Answer:
        masked = self._access.masked
        return replace(
            answer,
            body=masked(answer.body),
            events=tuple((at_s, masked(data)) for at_s, data in answer.events),
            error_text=masked(answer.error_text),
        )
