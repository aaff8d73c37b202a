"""A load client whose records hold no key, whatever the server sent back."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.adapters.attached.access import Access
from orchestrator.plan.block import BlockPlan
from orchestrator.ports import BlockObservation, Endpoint, LoadClient
from orchestrator.records import RequestRecord


class RedactedClient:
    """Implements ports.LoadClient over another one. Servers do quote the key in their errors."""

    def __init__(self, client: LoadClient, access: Access) -> None:
        self._client, self._access = client, access

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        seen = self._client.run_block(endpoint, block)
        return replace(seen, requests=tuple(self._redacted(record) for record in seen.requests))

    def close(self) -> None:
        self._client.close()

    def _redacted(self, record: RequestRecord) -> RequestRecord:
        text = self._access.masked(record.text)
        error_text = self._access.masked(record.error_text)
        if text == record.text and error_text == record.error_text:
            return record
        return replace(record, text=text, error_text=error_text)
