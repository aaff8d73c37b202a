"""What `serve` prints."""

from __future__ import annotations

import json
import shlex

import pytest

from orchestrator.ports import Endpoint

pytestmark = pytest.mark.slow  # imports Ray Serve


def test_the_curl_line_can_be_pasted() -> None:
    from orchestrator.adapters.serve_foreground import curl_lines

    text = curl_lines(Endpoint("baseline", "http://127.0.0.1:8000/baseline", "smol"))

    first, second = text.splitlines()
    assert first == "baseline: http://127.0.0.1:8000/baseline/v1"
    words = shlex.split(second)
    assert words[:3] == ["curl", "-N", "http://127.0.0.1:8000/baseline/v1/chat/completions"]
    body = json.loads(words[words.index("-d") + 1])
    assert (body["model"], body["stream"]) == ("smol", True)
