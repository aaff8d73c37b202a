"""Answers that must satisfy a grammar: JSON, expressions, choices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.analyse.suites.functional_checks.seen import (
    Part,
    Seen,
    answered,
    must,
    parsed,
    quoted,
)


def json_object(seen: Seen) -> str:
    part = seen["whole"]
    answered(part)
    text = part.said.text.strip()
    if part.said.first.finish_reason == "length":
        must(text.startswith("{"), f"{quoted(text)} begins no JSON object")
        return "a JSON object that ran out of tokens"
    must(isinstance(parsed(text), dict), f"{quoted(text)} is no JSON object")
    return quoted(text)


def json_schema(seen: Seen) -> str:
    """A grammar lets white space go on for ever, and small models do: an answer may run out of
    tokens, but not all of them."""
    whole: list[str] = []
    for part in seen:
        answered(part)
        text, schema = part.said.text, part.body["response_format"]["json_schema"]["schema"]
        if part.said.first.finish_reason == "length" and parsed(text) is None:
            must(text.lstrip().startswith("{"), f"{part.name}: {quoted(text)}")
            continue
        must(fits(parsed(text), schema), f"{part.name}: {quoted(text)}")
        whole.append(text)
    must(bool(whole), f"no answer of {len(seen.parts)} came to its end")
    return quoted(whole[0])


def matches_regex(seen: Seen) -> str:
    for part in seen:
        answered(part)
        wanted = part.body["structured_outputs"]["regex"]
        must(
            re.fullmatch(wanted, part.said.text) is not None,
            f"{part.name}: {quoted(part.said.text)}",
        )
    return quoted(seen["greedy"].said.text)


def one_of_the_choices(seen: Seen) -> str:
    for part in seen:
        chosen(part)
    return quoted(seen["greedy"].said.text)


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether `value` satisfies a schema of closed objects, enumerations and booleans."""
    if "enum" in schema:
        # True is 1 in Python, and not in JSON.
        return any(value == item and type(value) is type(item) for item in schema["enum"])
    if schema["type"] == "boolean":
        return isinstance(value, bool)
    properties = schema["properties"]
    return (
        isinstance(value, dict)
        and set(schema["required"]) <= value.keys() <= properties.keys()
        and all(fits(item, properties[name]) for name, item in value.items())
    )


def chosen(part: Part) -> None:
    answered(part)
    choices = part.body["structured_outputs"]["choice"]
    must(part.said.text in choices, f"{part.name}: {quoted(part.said.text)} is none of them")
