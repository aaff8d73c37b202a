"""Reads a Serve config file whose applications are engines of this product, or a switch."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from ray.serve.schema import ServeDeploySchema

from orchestrator.errors import Fault, SpecError
from orchestrator.serving.served_engine import ServedEngine
from orchestrator.spec.document import Document, key_text, parse
from orchestrator.spec.nearest import nearest
from orchestrator.spec.section import RULE_BROKEN
from orchestrator.switch.config import SwitchConfig

IMPORT_PATH = "orchestrator.serving.app:build"
SWITCH_PATH = "orchestrator.serving.switch.app:build"

KINDS: dict[str, type[BaseModel]] = {IMPORT_PATH: ServedEngine, SWITCH_PATH: SwitchConfig}
SERVE_KEYS = tuple(ServeDeploySchema.model_fields)


@dataclass(frozen=True)
class ServedApplication:
    name: str
    route_prefix: str | None
    """None: it has no way in but its own socket."""
    engine: ServedEngine


@dataclass(frozen=True)
class ServedSwitch:
    name: str
    route_prefix: str
    config: SwitchConfig


@dataclass(frozen=True)
class ServeFile:
    host: str
    port: int
    applications: tuple[ServedApplication, ...]
    switch: ServedSwitch | None = None


def read_serve_file(path: Path) -> ServeFile:
    """Raises: SpecError with every fault as `file:line key: rule, value, hint`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError([Fault(str(path), None, "", f"cannot be read ({error})")]) from error
    return parse_serve_file(text, str(path))


def parse_serve_file(text: str, name: str) -> ServeFile:
    """`read_serve_file` of a text; `name` stands for the file in what is said."""
    document = parse(text, name)
    if document.faults:
        raise SpecError(list(document.faults))
    if not isinstance(document.value, dict):
        raise SpecError([Fault(name, 1, "", "must be a mapping with `applications`")])
    try:
        schema = ServeDeploySchema.model_validate(document.value)
    except ValidationError as error:
        raise SpecError(_faults(error, document, (), SERVE_KEYS)) from None
    faults: list[Fault] = _host_faults(schema, document)
    engines: list[ServedApplication] = []
    switches: list[ServedSwitch] = []
    for index, one in enumerate(schema.applications):
        where = ("applications", index)
        kind = KINDS.get(one.import_path)
        if kind is None:
            must_be = f"{IMPORT_PATH} or {SWITCH_PATH}"
            faults.append(_fault(document, (*where, "import_path"), must_be, one.import_path))
            continue
        try:
            read: BaseModel = kind.model_validate(one.args)
        except ValidationError as error:
            faults += _faults(error, document, (*where, "args"), tuple(kind.model_fields))
            continue
        if isinstance(read, SwitchConfig):
            switches.append(ServedSwitch(one.name, one.route_prefix or "/", read))
            continue
        assert isinstance(read, ServedEngine)
        route = one.route_prefix or (None if read.direct else f"/{one.name}")
        engines.append(ServedApplication(one.name, route, read))
    if len(switches) > 1:
        faults.append(_fault(document, ("applications",), "of one switch", f"{len(switches)}"))
    if faults:
        raise SpecError(faults)
    options = schema.http_options
    return ServeFile(options.host, options.port, tuple(engines), next(iter(switches), None))


def _host_faults(schema: Any, document: Document) -> list[Fault]:
    host = schema.http_options.host
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if loopback or "http_options" not in document.value:
        return []
    key = ("http_options", "host")
    rule = "must be a loopback address here: the engines ask nobody for a password"
    hint = "use 127.0.0.1, or `serve deploy` on a cluster whose network you trust"
    return [Fault(document.file, document.line(key), key_text(key), rule, repr(host), hint)]


def _fault(document: Document, key: tuple[str | int, ...], must_be: str, value: str) -> Fault:
    return Fault(document.file, document.line(key), key_text(key), f"must be {must_be}", value)


def _faults(
    error: ValidationError,
    document: Document,
    around: tuple[str | int, ...],
    keys: tuple[str, ...],
) -> list[Fault]:
    faults = []
    for one in error.errors():
        key = (*around, *one["loc"])
        hint = None
        rule = one["msg"][:1].lower() + one["msg"][1:]
        value: str | None = repr(one["input"])
        if one["type"] == "extra_forbidden":
            rule, value = "is not a known key", None
            meant = nearest(str(one["loc"][-1]), keys)
            hint = f"did you mean {meant!r}?" if meant else None
        elif one["type"] == "missing":
            rule, value = "must be given", None
        elif one["type"] == RULE_BROKEN:
            told = one.get("ctx") or {}
            key, value, hint = (*key, *told["key"]), told["value"], told["hint"]
        faults.append(Fault(document.file, document.line(key), key_text(key), rule, value, hint))
    return faults
