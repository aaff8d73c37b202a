"""The live page: one HTML file that reads the admin API. No network but the switch itself."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class LivePage:
    html: str
    headers: dict[str, str]


@cache
def live_page() -> LivePage:
    """The page, and the headers that allow it exactly its own script and style."""
    css, js = _file("live.css"), _file("live.js")
    html = _file("live.html").replace("/*css*/", css).replace("/*js*/", js)
    policy = (
        f"default-src 'none'; script-src {_hash(js)}; style-src {_hash(css)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return LivePage(
        html,
        {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        },
    )


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
