"""How the servers are reached: the key, the headers, the certificate. Secrets stay in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.adapters.http.pool import Tls
from orchestrator.adapters.local.secrets import MASK
from orchestrator.errors import DeploymentError
from orchestrator.records import FailureClass
from orchestrator.spec.attach import Attach

_SHORTEST_SECRET = 6
"""A shorter key (servers without a check are given `x` or `none`) would mask ordinary text."""


@dataclass(frozen=True)
class Access:
    """What goes with every request. Its text form shows neither headers nor key."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: Tls = Tls()  # noqa: RUF009 -- frozen
    secret: str | None = field(default=None, repr=False)
    key_variable: str | None = None

    def masked(self, value: Any) -> Any:
        """Plain JSON or text with the key replaced by the mask, wherever it stands."""
        if self.secret is None or len(self.secret) < _SHORTEST_SECRET:
            return value
        if isinstance(value, str):
            return value.replace(self.secret, MASK)
        if isinstance(value, Mapping):
            return {self.masked(name): self.masked(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.masked(item) for item in value]
        return value


def access_from(section: Attach, environment: Mapping[str, str]) -> Access:
    """Raises: DeploymentError when the key's variable is missing or cannot be sent."""
    tls = Tls(section.tls_ca_file, section.tls_verify)
    name = section.api_key_env
    if name is None:
        return Access(dict(section.headers), tls)
    key = environment.get(name, "")
    if not key:
        raise _bad_key(name, "must hold the API key, and is not set", f"export {name}=…")
    if not (key.isascii() and key.isprintable() and key == key.strip()):
        # The value itself is not shown.
        raise _bad_key(
            name,
            "must be printable ASCII on one line, without blanks around it",
            "the end of a key read from a file is often a line break",
        )
    headers = {**section.headers, "Authorization": f"Bearer {key}"}
    return Access(headers, tls, key, name)


def _bad_key(name: str, rule: str, hint: str) -> DeploymentError:
    return DeploymentError(
        FailureClass.BAD_CONFIGURATION,
        f"attach.api_key_env: the environment variable {name} {rule}; {hint}",
    )
