"""Who may come in, and how much they may ask: keys, guesses, tenants' allowances."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import OrderedDict
from dataclasses import dataclass

from orchestrator.serving.switch.refusals import Refused
from orchestrator.switch.config import SwitchConfig, Tenant
from orchestrator.switch.keys import owner
from orchestrator.switch.limits import Allowance, Bucket

GUESSES_PER_MINUTE = 30.0
MOST_GUESSERS = 10_000


@dataclass(frozen=True)
class Guest:
    """`tenant` None: nobody needs a key here."""

    tenant: Tenant | None
    allowance: Allowance | None

    @property
    def name(self) -> str | None:
        return None if self.tenant is None else self.tenant.name


class Guesses:
    """Wrong keys by address: beyond some a minute the address is not listened to for a while.

    Of at most `MOST_GUESSERS` addresses; the one that was heard longest ago is forgotten.
    """

    def __init__(self) -> None:
        self._left: OrderedDict[str, Bucket] = OrderedDict()

    def wait_s(self, address: str, now_s: float) -> float:
        bucket = self._left.get(address)
        return 0.0 if bucket is None else bucket.wait_s(1.0, now_s)

    def wrong(self, address: str, now_s: float) -> None:
        bucket = self._left.setdefault(address, Bucket(GUESSES_PER_MINUTE))
        self._left.move_to_end(address)
        bucket.take(1.0, now_s)
        if len(self._left) > MOST_GUESSERS:
            self._left.popitem(last=False)


class Door:
    """Every replica holds its part of a tenant's limits: limit / replicas, a request at least."""

    def __init__(self, config: SwitchConfig, salt_key: str) -> None:
        self._salt_key = salt_key.encode()
        self._owners = [(t.name, key) for t in config.tenants for key in t.keys_sha256]
        self._guests = {t.name: Guest(t, _allowance(t, config.replicas)) for t in config.tenants}
        self._guesses = Guesses()

    def enter(self, authorization: str | None, address: str, now_s: float) -> Guest:
        """Raises: Refused 401, or 429 for an address that keeps guessing."""
        if not self._owners:
            return Guest(None, None)
        scheme, _, key = (authorization or "").partition(" ")
        # A right key is let in from an address that others guess from: it may be a whole office's.
        name = owner(key.strip(), self._owners) if scheme.lower() == "bearer" else None
        if name is not None:
            return self._guests[name]
        wait_s = self._guesses.wait_s(address, now_s)
        if wait_s > 0:
            raise Refused(
                429, "too many wrong keys from here", headers={"Retry-After": f"{_ceil(wait_s)}"}
            )
        self._guesses.wrong(address, now_s)
        raise Refused(
            401,
            "a valid API key is needed: Authorization: Bearer KEY",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def salt(self, guest: Guest, own: object) -> str | None:
        """What keeps a tenant's prefix cache apart; the caller's `own` salt divides it further."""
        if guest.tenant is None or not guest.tenant.isolated:
            return None
        text = f"{guest.tenant.name}\0{own if isinstance(own, str) else ''}"
        return hmac.new(
            self._salt_key, text.encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()


def begin(guest: Guest, estimate: float, now_s: float) -> None:
    """Charges the tenant. Raises: Refused 429, with the time after which to come again."""
    if guest.allowance is None:
        return
    refusal = guest.allowance.begin(estimate, now_s)
    if refusal is not None:
        raise Refused(
            429,
            f"{refusal.text}; try again in {refusal.retry_after_s:.1f} s",
            param=refusal.limit,
            headers={"Retry-After": f"{_ceil(refusal.retry_after_s)}"},
        )


def _allowance(tenant: Tenant, replicas: int) -> Allowance:
    def part(limit: float | None) -> float | None:
        return None if limit is None else max(1.0, limit / replicas)

    most = tenant.concurrency
    return Allowance(
        requests_per_minute=part(tenant.requests_per_minute),
        tokens_per_minute=part(tenant.tokens_per_minute),
        concurrency=None if most is None else max(1, most // replicas),
    )


def _ceil(seconds: float) -> int:
    return max(1, math.ceil(seconds))
