"""Gives an open block up when the server's queue grows without bound."""

from __future__ import annotations

from orchestrator.adapters.http.connection import Exchange
from orchestrator.analyse.saturation import TURNED_AWAY_ERRORS, TURNED_AWAY_STATUS
from orchestrator.analyse.saturation_monitor import SaturationMonitor


class QueueWatch:
    """Feeds the monitor with what the connections have recorded so far.

    Looks are made when requests come, and what is in flight is read then: nothing is done in the
    path of a token.
    """

    def __init__(self) -> None:
        self._monitor = SaturationMonitor()
        self._in_flight: dict[int, Exchange] = {}

    @property
    def finding(self) -> str | None:
        """Why the block is to be given up; None while the server may be keeping up."""
        found = self._monitor.finding
        return None if found is None else found.why

    def came(self, index: int, exchange: Exchange) -> None:
        for other, seen in self._in_flight.items():
            self._first_token(other, seen)
        self._in_flight[index] = exchange
        assert exchange.sent_s is not None
        self._monitor.came(index, exchange.sent_s)

    def left(self, index: int, exchange: Exchange) -> None:
        self._in_flight.pop(index, None)
        at_s = exchange.end_s
        if at_s is None or exchange.sent_s is None:
            return
        self._first_token(index, exchange)
        turned_away = exchange.status in TURNED_AWAY_STATUS or exchange.error in TURNED_AWAY_ERRORS
        self._monitor.left(index, at_s, turned_away=turned_away)

    def _first_token(self, index: int, exchange: Exchange) -> None:
        # The first read may be the head alone, which servers send before they have a token.
        if len(exchange.read_s) > 1:
            self._monitor.first_token(index, exchange.read_s[1])
