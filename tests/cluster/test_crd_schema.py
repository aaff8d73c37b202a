"""The conversion that the manifests are checked with is itself strict."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.cluster.crd_schema import converted_schema


def valid(schema: dict[str, Any], value: object) -> bool:
    return bool(jsonschema.Draft7Validator(converted_schema(schema)).is_valid(value))


def test_an_unknown_field_is_refused() -> None:
    schema = {"type": "object", "properties": {"backoffLimit": {"type": "integer"}}}
    assert valid(schema, {"backoffLimit": 3})
    assert not valid(schema, {"backOffLimit": 3})


def test_unless_the_schema_keeps_unknown_fields() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert valid(schema, {"name": "a", "anything": [1]})
    assert not valid(schema, {"name": 1})


@pytest.mark.parametrize(("value", "fits"), [("8", True), (8, True), (8.5, False), (None, False)])
def test_a_quantity_is_a_number_or_a_word(value: object, fits: bool) -> None:
    schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    assert valid(schema, value) is fits


def test_a_map_checks_its_values() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    assert valid(schema, {"num-cpus": "8"})
    assert not valid(schema, {"num-cpus": 8})


def test_null_only_where_it_is_allowed() -> None:
    assert valid({"type": "string", "nullable": True}, None)
    assert not valid({"type": "string"}, None)
