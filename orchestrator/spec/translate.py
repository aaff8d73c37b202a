"""From pydantic's errors to faults in this product's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from orchestrator.spec.document import Path
from orchestrator.spec.nearest import nearest
from orchestrator.spec.section import RULE_BROKEN


@dataclass(frozen=True)
class Finding:
    """One broken rule at `path`.

    `involves` are the other places that the rule reads; `meant` is the place that a misspelt key
    probably meant, about which nothing more is to be said.
    """

    path: Path
    rule: str
    value: str | None = None
    hint: str | None = None
    involves: tuple[Path, ...] = ()
    meant: Path | None = None


_WORDS = {
    "missing": "is required",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
}


def finding(error: ErrorDetails, root: type[BaseModel], raw: Any) -> Finding:
    """The broken rule in words, at the path that it has in the file."""
    kind, given, context = error["type"], error.get("input"), error.get("ctx", {})
    path = file_path(error["loc"], raw)
    if kind == RULE_BROKEN:
        return Finding(
            path=(*path, *context["key"]),
            rule=context["rule"],
            value=context["value"],
            hint=context["hint"],
            involves=tuple((*path, *other) for other in context["involves"]),
        )
    if kind == "extra_forbidden":
        known = _known_keys(root, error["loc"][:-1])
        close = nearest(str(path[-1]), known)
        hint = f"did you mean '{close}'?" if close else f"known keys: {', '.join(sorted(known))}"
        meant = (*path[:-1], close) if close else None
        return Finding(path, "is not a known key", None, hint, meant=meant)
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        close = nearest(str(given), names)
        return Finding(
            path,
            f"must be one of {', '.join(names)}",
            shown(given),
            f"did you mean '{close}'?" if close else None,
        )
    if kind == "missing":
        return Finding(path, _WORDS[kind])
    return Finding(path, _rule(kind, context, error["msg"]), shown(given), _hint(kind, given))


def _rule(kind: str, context: Mapping[str, Any], message: str) -> str:
    bounds = {
        "greater_than_equal": ("ge", ">="),
        "greater_than": ("gt", ">"),
        "less_than_equal": ("le", "<="),
        "less_than": ("lt", "<"),
    }
    if kind in bounds:
        name, sign = bounds[kind]
        return f"must be {sign} {context[name]:g}"
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"must match {context['pattern']}")
    return _WORDS.get(kind, message)


_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "must be letters, digits, '.', '-' or '_', "
    "and begin with a letter or digit",
    r"^[A-Z]{3}$": "must be a currency's three capital letters",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "must be the name of an environment variable",
}


def _hint(kind: str, given: object) -> str | None:
    if kind == "string_type" and given is not None and not isinstance(given, dict | list):
        return "put it in quotes if text is meant"
    if kind in ("tuple_type", "list_type") and isinstance(given, dict):
        return "begin each entry with '- '"
    if isinstance(given, str) and kind in ("int_type", "float_type", "bool_type"):
        unquoted = given.strip().lower()
        if kind == "bool_type" and unquoted in ("true", "false"):
            return "take the quotes away"
        if kind != "bool_type" and re.fullmatch(r"[-+]?[0-9.]+", unquoted):
            return "take the quotes away"
    return None


def shown(value: object) -> str:
    """A value as the file has it, short enough for one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple) and not value:
        return "an empty list"
    text = repr(list(value)) if isinstance(value, list | tuple) else repr(value)
    if not isinstance(value, str | int | float | list | tuple):
        text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def file_path(location: Sequence[str | int], raw: Any) -> Path:
    """The location without what the file does not have: names of union members and key marks.

    A member's name follows the entry it was chosen for and equals the entry's own `method` or
    `mode`; a single value that stands for a list has no index.
    """
    path: list[str | int] = []
    here = raw
    for depth, part in enumerate(location):
        last = depth == len(location) - 1
        if part == "[key]":
            continue
        if isinstance(here, Mapping):
            chosen = (here.get("method"), here.get("mode", "closed"))
            if part not in here and part in chosen and not (last and depth == 0):
                continue
            path.append(part)
            here = here.get(str(part))
        elif isinstance(here, list | tuple) and isinstance(part, int):
            path.append(part)
            here = here[part] if part < len(here) else None
        elif isinstance(part, int):
            continue
        else:
            path.append(part)
            here = None
    return tuple(path)


def _known_keys(root: type[BaseModel], location: Sequence[str | int]) -> tuple[str, ...]:
    """The keys of the section at `location` (a pydantic location, member names included)."""
    model = root
    for part in location:
        if not isinstance(part, str) or part == "[key]":
            continue
        if part in model.model_fields:
            inner = _sections(model.model_fields[part].annotation)
            if len(inner) == 1:
                model = inner[0]
            elif inner:
                candidates = inner
                continue
        elif chosen := [m for m in candidates if _tag(m) == part]:
            model = chosen[0]
    return tuple(model.model_fields)


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _sections(inner)]


def _tag(model: type[BaseModel]) -> str | None:
    for name in ("method", "mode"):
        if name in model.model_fields:
            return str(get_args(model.model_fields[name].annotation)[0])
    return None
