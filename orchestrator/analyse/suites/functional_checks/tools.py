"""Calls of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.analyse.suites.functional_checks.constraints import fits
from orchestrator.analyse.suites.functional_checks.seen import Part, Seen, must, parsed, quoted


def calls_the_tool(seen: Seen) -> str:
    for part in seen:
        calls = part.said.first.tool_calls
        must(len(calls) == 1, f"{part.name}: {len(calls)} calls, must be 1")
        _fitting_call(part, calls[0])
    return str(seen["whole"].said.first.tool_calls[0]["function"]["arguments"])


def may_call_the_tool(seen: Seen) -> str:
    part = seen["whole"]
    calls = part.said.first.tool_calls
    must(bool(calls or part.said.text), "neither words nor a call")
    for call in calls:
        must(call["function"]["name"] == _tool(part)["name"], f"calls {call['function']['name']}")
        must(isinstance(parsed(call["function"]["arguments"]), dict), "arguments are no JSON")
    return f"{len(calls)} calls" if calls else quoted(part.said.text)


def _tool(part: Part) -> Mapping[str, Any]:
    function: Mapping[str, Any] = part.body["tools"][0]["function"]
    return function


def _fitting_call(part: Part, call: Mapping[str, Any]) -> None:
    wanted, function = _tool(part), call["function"]
    must(function["name"] == wanted["name"], f"{part.name}: calls {function['name']!r}")
    must(
        fits(parsed(function["arguments"]), wanted["parameters"]),
        f"{part.name}: arguments {quoted(function['arguments'])}",
    )
