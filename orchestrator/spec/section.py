"""What every section of the experiment file is, and the kinds of value that occur in them.

A rule that a value breaks is raised as `broken(...)`: it carries the keys involved and a hint, so
that the reader of the file can say `file:line key: rule, value; hint`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from orchestrator.spec.nearest import nearest

RULE_BROKEN = "rule_broken"


class Section(BaseModel):
    """A part of the experiment file: frozen, and unknown keys are errors."""

    # Each section is compiled once, inside the experiment that holds it, not once more by itself.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def defaults() -> Any:
    """A section that is left out is one in which every key is left out."""
    return Field(default={}, validate_default=True)


def broken(
    rule: str,
    *,
    value: object = None,
    hint: str | None = None,
    key: tuple[str | int, ...] = (),
    involves: Iterable[tuple[str | int, ...]] = (),
) -> PydanticCustomError:
    """The error for a rule that a section breaks.

    `key` is where the fault is shown, relative to the section; `involves` are further keys whose
    values the rule reads (a fault in one of them makes this one moot).
    """
    return PydanticCustomError(
        RULE_BROKEN,
        "{rule}",
        {
            "rule": rule,
            "value": None if value is None else str(value),
            "hint": hint,
            "key": list(key),
            "involves": [list(path) for path in (key, *involves)],
        },
    )


@dataclass(frozen=True)
class OneOf:
    """A name out of a fixed list."""

    available: tuple[str, ...]

    def checked(self, name: str) -> str:
        if name in self.available:
            return name
        close = nearest(name, self.available)
        raise broken(
            f"must be one of {', '.join(self.available)}",
            value=f"'{name}'",
            hint=f"did you mean '{close}'?" if close else None,
        )

    def __get_pydantic_core_schema__(
        self, source: type, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "enum": list(self.available)}


class _SingleOrList:
    """Lets one value stand for a list of one."""

    @staticmethod
    def as_list(value: object) -> object:
        """A mapping or null is left as it is, for the type check to refuse."""
        kept = value is None or isinstance(value, list | tuple | dict)
        return value if kept else (value,)

    def __get_pydantic_core_schema__(
        self, source: type, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self.as_list, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


Item = TypeVar("Item")

Axis: TypeAlias = Annotated[tuple[Item, ...], Field(min_length=1), _SingleOrList()]
"""One value or a list of values: the list is an axis of the grid."""


def plain_value(value: Any, path: tuple[str | int, ...] = ()) -> None:
    """Raises the rule's error unless `value` is plain JSON: it must be hashed and logged."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise broken("keys must be text", value=repr(name), key=path)
            plain_value(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            plain_value(inner, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        raise broken("must be a finite number", value=value, key=path)
    elif value is not None and not isinstance(value, str | bool | int | float):
        raise broken(
            "must be text, a number, true or false",
            value=value,
            hint="put it in quotes if text is meant",
            key=path,
        )


def _plain_mapping(value: dict[str, Any]) -> dict[str, Any]:
    plain_value(value)
    return value


Count: TypeAlias = Annotated[int, Field(strict=True, ge=1)]
Whole: TypeAlias = Annotated[int, Field(strict=True, ge=0)]
Positive: TypeAlias = Annotated[float, Field(strict=True, gt=0)]
NotNegative: TypeAlias = Annotated[float, Field(strict=True, ge=0)]
Fraction: TypeAlias = Annotated[float, Field(strict=True, gt=0, lt=1)]
Share: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Text: TypeAlias = Annotated[str, Field(strict=True, min_length=1)]
Mapped: TypeAlias = Annotated[dict[str, Any], AfterValidator(_plain_mapping)]
Name: TypeAlias = Annotated[
    str,
    Field(strict=True, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"),
]
"""A name that becomes a folder's name: letters, digits, dot, dash, underscore."""
