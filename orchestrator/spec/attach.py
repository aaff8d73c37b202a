"""Servers that already run."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from orchestrator.spec.section import Flag, Section, Text, broken


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise broken("must be an http:// or https:// address", value=f"'{url}'")
    if parts.username or parts.password:
        raise broken(
            "must not hold a user name or password",
            hint="put the key in an environment variable and name it in api_key_env",
        )
    if parts.path.rstrip("/").endswith("/v1"):
        raise broken("must end before /v1", value=f"'{url}'", hint=f"write {url.rstrip('/')[:-3]}")
    return url.rstrip("/")


def _no_secrets(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if re.search(r"authorization|api-?key|token|secret|cookie", name, re.IGNORECASE):
            raise broken(
                "must not be written in the file, which is copied into the results",
                hint="put the key in an environment variable and name it in api_key_env",
                key=(name,),
            )
    return headers


Address = Annotated[Text, AfterValidator(_address)]


class Attach(Section):
    """Two OpenAI-compatible servers; each address ends before `/v1`."""

    baseline: Address
    speculative: Address
    model: Text | None = Field(default=None, description="the name the servers answer to")
    api_key_env: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = (
        Field(default=None, description="environment variable that holds the API key")
    )
    headers: Annotated[dict[str, Text], AfterValidator(_no_secrets)] = Field(default_factory=dict)
    tls_ca_file: Text | None = Field(
        default=None,
        description="PEM file of the authority (or the certificate itself) that vouches for the "
        "servers, relative to this file; without it the system's authorities do",
    )
    tls_verify: Flag = Field(
        default=True, description="false: any certificate will do, also a forged one"
    )

    @model_validator(mode="after")
    def _tls_only_where_it_acts(self) -> Attach:
        if self.tls_ca_file is None and self.tls_verify:
            return self
        key = "tls_verify" if self.tls_ca_file is None else "tls_ca_file"
        if not any(url.startswith("https://") for url in (self.baseline, self.speculative)):
            raise broken(
                "acts only with an https:// address",
                value=f"'{self.tls_ca_file}'" if self.tls_ca_file else "false",
                key=(key,),
                involves=[("baseline",), ("speculative",)],
            )
        if self.tls_ca_file is not None and not self.tls_verify:
            raise broken(
                "must not be given together with tls_verify: false, which looks at no certificate",
                value=f"'{self.tls_ca_file}'",
                key=("tls_ca_file",),
                involves=[("tls_verify",)],
            )
        return self
