"""Small requests to an engine on this node."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def get_json(url: str, *, timeout_s: float = 30.0) -> dict[str, Any]:
    """Raises: OSError, ValueError"""
    with urllib.request.urlopen(url, timeout=timeout_s) as answer:
        content: dict[str, Any] = json.load(answer)
        return content


def post(url: str, *, timeout_s: float) -> None:
    """Raises: OSError"""
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=timeout_s):
        return


def answers(url: str, *, timeout_s: float = 10.0) -> bool:
    """Whether a GET there is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
