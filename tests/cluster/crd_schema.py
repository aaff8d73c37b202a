"""A CustomResourceDefinition's schema as JSON Schema, strict where the API server would be.

Kubernetes' structural schemas differ from JSON Schema in three ways that matter here:
`x-kubernetes-int-or-string` stands for a type, `nullable` for one more, and unknown fields are
refused (or pruned, which is worse) unless `x-kubernetes-preserve-unknown-fields` says otherwise.
"""

from __future__ import annotations

from typing import Any

_PASSED_ON = (
    "enum", "format", "maximum", "maxItems", "maxLength", "maxProperties", "minimum", "minItems",
    "minLength", "minProperties", "pattern", "required", "uniqueItems",
)  # fmt: skip
_COMBINED = ("allOf", "anyOf", "oneOf")


def json_schema_of(crd: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    """The schema of one served version, with apiVersion, kind and metadata allowed."""
    (served,) = (v for v in crd["spec"]["versions"] if v["name"] == version and v["served"])
    converted = converted_schema(served["schema"]["openAPIV3Schema"])
    converted["properties"] |= {
        "apiVersion": {"const": f"{crd['spec']['group']}/{version}"},
        "kind": {"const": crd["spec"]["names"]["kind"]},
        "metadata": {"type": "object", "required": ["name"]},
    }
    converted["required"] = sorted({*converted.get("required", ()), "apiVersion", "kind", "spec"})
    return converted


def converted_schema(node: dict[str, Any]) -> dict[str, Any]:
    result = {key: node[key] for key in _PASSED_ON if key in node}
    result |= {key: [_constraint(part) for part in node[key]] for key in _COMBINED if key in node}
    if node.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    elif "type" in node:
        result["type"] = [node["type"], "null"] if node.get("nullable") else node["type"]
    if "items" in node:
        result["items"] = converted_schema(node["items"])
    fields = node.get("properties")
    if fields is not None:
        result["properties"] = {name: converted_schema(field) for name, field in fields.items()}
    others = node.get("additionalProperties")
    if isinstance(others, dict):
        result["additionalProperties"] = converted_schema(others)
    elif fields is not None and not node.get("x-kubernetes-preserve-unknown-fields"):
        result["additionalProperties"] = False
        if node.get("x-kubernetes-embedded-resource"):
            for name in ("apiVersion", "kind", "metadata"):
                result["properties"].setdefault(name, {})
    return result


def _constraint(node: dict[str, Any]) -> dict[str, Any]:
    """A part of anyOf and its kin only constrains; it does not say which fields there are."""
    result = {key: node[key] for key in (*_PASSED_ON, "type") if key in node}
    if "properties" in node:
        result["properties"] = {k: _constraint(v) for k, v in node["properties"].items()}
    if "not" in node:
        result["not"] = _constraint(node["not"])
    return result
