"""Texts that satisfy a constraint: what a simulated engine says under guided decoding."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

# The parser of regular expressions is the standard library's own; it has no public name.
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Literal

Kind = Literal["json_object", "json", "regex", "choice"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the answer must be: any JSON object, one of a schema, a match, or one of a list."""

    kind: Kind
    of: Any = None


def satisfying(constraint: Constraint, rng: random.Random) -> str:
    """A text that satisfies it. Raises: ValueError for one that is not understood."""
    if constraint.kind == "json_object":
        return '{"answer": "toy"}'
    if constraint.kind == "choice":
        return str(rng.choice(list(constraint.of)))
    if constraint.kind == "json":
        return json.dumps(_instance(constraint.of, rng))
    try:
        return _match(_parser.parse(constraint.of), rng)
    except re.error as fault:
        raise ValueError(f"no regular expression: {fault}") from fault


def _instance(schema: Mapping[str, Any], rng: random.Random) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(list(schema["enum"]))
    kind = schema.get("type", "object")
    if kind == "object":
        return {k: _instance(part, rng) for k, part in schema.get("properties", {}).items()}
    if kind == "array":
        count = schema.get("minItems", 1)
        return [_instance(schema.get("items", {"type": "null"}), rng) for _ in range(count)]
    if kind in ("integer", "number"):
        return rng.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 9)))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "string":
        return "toy"
    if kind == "null":
        return None
    raise ValueError(f"type {kind!r} is not understood")


def _match(parsed: Any, rng: random.Random) -> str:
    return "".join(_part(op, value, rng) for op, value in parsed)


def _part(op: Any, value: Any, rng: random.Random) -> str:
    if op is _constants.LITERAL:
        return chr(value)
    if op is _constants.IN:
        inner_op, inner = rng.choice(value)
        return _part(inner_op, inner, rng)
    if op is _constants.RANGE:
        return chr(rng.randint(*value))
    if op is _constants.CATEGORY:
        return {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "w", "CATEGORY_SPACE": " "}[str(value)]
    if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
        least, most, inner = value
        times = rng.randint(least, max(least, min(int(most), least + 3)))
        return "".join(_match(inner, rng) for _ in range(times))
    if op is _constants.SUBPATTERN:
        return _match(value[-1], rng)
    if op is _constants.BRANCH:
        return _match(rng.choice(value[1]), rng)
    if op is _constants.AT:
        return ""
    raise ValueError(f"{op} is not understood in a regular expression here")
