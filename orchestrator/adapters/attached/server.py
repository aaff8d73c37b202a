"""One server that already runs: whether it answers, for which model, and what it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.identity import Identity, identify
from orchestrator.adapters.http.page import Page, get_page
from orchestrator.errors import DeploymentError
from orchestrator.records import FailureClass

_PAGE_TIMEOUT_S = 5.0
_LOADING_EVERY_S = 1.0


@dataclass(frozen=True)
class FoundServer:
    """What a server said when it was asked who it is."""

    url: str
    model: str
    identity: Identity
    simulated: bool
    health_path: str
    """`/health` where it exists; otherwise the list of models."""


def find_server(
    url: str,
    access: Access,
    *,
    wanted: str | None,
    hint: str | None = None,
    timeout_s: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> FoundServer:
    """Asks the server at `url` for its models, then what it is.

    `wanted` is the model named in the file. Without it the server must serve exactly one, or one
    of the name `hint`. While it is loading (HTTP 503) it is asked again, up to `timeout_s`.
    Raises: DeploymentError.
    """
    page = _models_page(url, access, timeout_s=timeout_s, now=now, sleep=sleep)
    served = _served(page) if page.status == 200 else []
    names = [str(model["id"]) for model in served]
    model = wanted or _only_model(url, names, page.status, hint)
    mine = next((entry for entry in served if entry["id"] == model), {})
    simulated = "x-simulated" in page.headers

    def read(path: str) -> Any:
        return _json_or_none(url + path, access)

    return FoundServer(
        url=url,
        model=model,
        identity=identify(read, owned_by=mine.get("owned_by"), simulated=simulated),
        simulated=simulated,
        health_path="/health" if _status(url + "/health", access) == 200 else "/v1/models",
    )


def answers(server: FoundServer, access: Access) -> bool:
    """Whether the server is still there. Without `/health` any answer short of HTTP 5xx counts."""
    status = _status(server.url + server.health_path, access)
    if status is None:
        return False
    return status == 200 if server.health_path == "/health" else status < 500


def _models_page(
    url: str,
    access: Access,
    *,
    timeout_s: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Page:
    until = now() + timeout_s
    while True:
        try:
            page = _get(url + "/v1/models", access)
        except OSError as fault:
            raise _unreachable(url, fault) from fault
        if page.status == 503 and now() + _LOADING_EVERY_S < until:
            sleep(_LOADING_EVERY_S)
            continue
        if page.status in (401, 403):
            raise refused_key(url, access, page.status)
        # A server may have no such page (404): the model must then be named in the file.
        if page.status not in (200, 404, 405):
            told = access.masked(page.text[:300].strip())
            raise DeploymentError(
                FailureClass.START_TIMEOUT if page.status == 503 else FailureClass.START_FAILED,
                f"{url}/v1/models answered HTTP {page.status}: {told or 'no text'}",
            )
        return page


def refused_key(url: str, access: Access, status: int, told: str | None = None) -> DeploymentError:
    """The error for a server that does not let us in; the key itself is not shown."""
    if access.key_variable is None:
        mend = "name the environment variable that holds its key in attach.api_key_env"
    else:
        mend = f"check the key in {access.key_variable} (attach.api_key_env)"
    words = f" ({access.masked(told)})" if told else ""
    return DeploymentError(
        FailureClass.BAD_CONFIGURATION, f"{url} refused the API key: HTTP {status}{words}; {mend}"
    )


def _unreachable(url: str, fault: OSError) -> DeploymentError:
    text = str(fault) or type(fault).__name__
    if "CERTIFICATE_VERIFY_FAILED" in text:
        mend = "name the authority's PEM file in attach.tls_ca_file"
    else:
        mend = "is the server running, and is this its address?"
    return DeploymentError(FailureClass.START_FAILED, f"{url} does not answer: {text}; {mend}")


def _served(page: Page) -> list[dict[str, Any]]:
    listed = page.json()
    entries = listed.get("data") if isinstance(listed, dict) else None
    return [entry for entry in entries or [] if isinstance(entry, dict) and entry.get("id")]


def _only_model(url: str, names: list[str], status: int, hint: str | None) -> str:
    if hint in names:
        return str(hint)
    if len(names) == 1:
        return names[0]
    if names:
        what = f"serves {len(names)} models ({', '.join(sorted(names))})"
    else:
        what = f"does not say which model it serves (HTTP {status} at /v1/models)"
    raise DeploymentError(
        FailureClass.BAD_CONFIGURATION, f"{url} {what}; name the one to ask in attach.model"
    )


def _status(url: str, access: Access) -> int | None:
    try:
        return _get(url, access).status
    except OSError:
        return None


def _json_or_none(url: str, access: Access) -> Any:
    try:
        page = _get(url, access)
    except OSError:
        return None
    return page.json() if page.status == 200 else None


def _get(url: str, access: Access) -> Page:
    return get_page(url, headers=access.headers, timeout_s=_PAGE_TIMEOUT_S, tls=access.tls)
