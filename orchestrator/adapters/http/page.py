"""One short page of a server, outside any measurement: its models, its health, its counters."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from orchestrator.adapters.http.pool import Tls

_LIMIT_BYTES = 16 * 1024 * 1024
_REDIRECTS = 3
_NO_TLS_OPTIONS = Tls()


@dataclass(frozen=True, slots=True)
class Page:
    """What the server answered, whatever its status; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """None when the body is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def get_page(
    url: str, *, headers: Mapping[str, str], timeout_s: float, tls: Tls = _NO_TLS_OPTIONS
) -> Page:
    """GET `url`. A redirect is followed only within the same server: it would carry the key along.

    Proxies of the environment are ignored, as they are when measuring: what they answer is not the
    server's word.
    Raises: OSError (TimeoutError and ssl.SSLError among them) when there is no whole answer.
    """
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _AsItComes()]
    if urlsplit(url).scheme == "https":
        handlers.append(urllib.request.HTTPSHandler(context=tls.context()))
    opener = urllib.request.build_opener(*handlers)
    page = _get(opener, url, headers, timeout_s)
    for _ in range(_REDIRECTS):
        to = urljoin(url, page.headers.get("location", ""))
        if page.status not in (301, 302, 307, 308) or _origin(to) != _origin(url):
            break
        url = to
        page = _get(opener, url, headers, timeout_s)
    return page


class _AsItComes(urllib.request.HTTPErrorProcessor):
    """Neither redirects nor errors are acted upon."""

    def http_response(
        self, request: urllib.request.Request, response: http.client.HTTPResponse
    ) -> http.client.HTTPResponse:
        return response

    https_response = http_response


def _get(
    opener: urllib.request.OpenerDirector, url: str, headers: Mapping[str, str], timeout_s: float
) -> Page:
    request = urllib.request.Request(url, headers=dict(headers))
    try:
        with opener.open(request, timeout=timeout_s) as response:
            named = {name.lower(): value for name, value in response.headers.items()}
            return Page(response.status, named, response.read(_LIMIT_BYTES))
    except urllib.error.URLError as fault:
        # Its own text wraps the reason in `<urlopen error …>`.
        raise fault.reason if isinstance(fault.reason, OSError) else fault from None
    except http.client.HTTPException as fault:
        raise OSError(f"not a whole HTTP answer ({type(fault).__name__})") from fault


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
