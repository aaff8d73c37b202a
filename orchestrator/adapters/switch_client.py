"""Talks to a switch's admin API, and reads its state folder where the API does not answer."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import Fault, SpecError, SwitchUnreachable
from orchestrator.switch.keys import TOKEN_FILE

TOKEN_VARIABLE = "ORCHESTRATOR_SWITCH_TOKEN"
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class SwitchClient:
    url: str
    """`http://host:port` of the admin API."""
    token: str

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def post(self, path: str, said: dict[str, Any]) -> Any:
        """Raises: SpecError for what the switch refuses; SwitchUnreachable"""
        return self._ask("POST", path, json.dumps(said).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(self.url.rstrip("/") + path, data=body, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = _message(error.read()) or error.reason
            raise SpecError([Fault(self.url + path, None, "", text, f"{error.code}")]) from None
        except OSError as error:
            raise SwitchUnreachable(
                f"{self.url} does not answer ({getattr(error, 'reason', error)}); is the switch "
                "running, and is --admin its admin address?"
            ) from None


def token_of(token_file: Path | None, state: Path | None) -> str:
    """From the file, else the environment, else the state folder.

    Raises: SpecError when none of them has it.
    """
    if token_file is None and os.environ.get(TOKEN_VARIABLE):
        return os.environ[TOKEN_VARIABLE].strip()
    path = token_file or (state / TOKEN_FILE if state is not None else None)
    if path is not None:
        try:
            return path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SpecError(
                [Fault(str(path), None, "", f"the token cannot be read ({error.strerror})")]
            ) from None
    raise SpecError(
        [
            Fault(
                "--token-file",
                None,
                "",
                "an operator's token must be given",
                hint=f"name its file, the switch's --state, or set {TOKEN_VARIABLE}",
            )
        ]
    )


def _message(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return None
