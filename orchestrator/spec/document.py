"""A YAML text as plain values, with the line of everything in it.

Safe by construction: no tags beyond YAML's own types, a limit on size, and a limit on how much
aliases may multiply it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.errors import Fault

MAX_BYTES = 1_048_576
MAX_VALUES = 200_000
"""Values after aliases are written out. A grid given value by value stays far below."""

Path = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """SafeLoader that also reads `1e-3` as a number (YAML 1.1 wants `1.0e-3`)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


@dataclass
class Document:
    """`lines[path]` is where the key (or list item) at `path` stands."""

    file: str
    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    unread: set[Path] = field(default_factory=set)
    """Where something stands that could not be read as a value."""

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest thing around it that the file has."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def key_text(path: Path) -> str:
    """`("workloads", 1, "name")` as `workloads[1].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def parse(text: str, file: str) -> Document:
    """Never raises for what the text holds: what is wrong with it is in `faults`."""
    document = Document(file)
    if len(text.encode()) > MAX_BYTES:
        document.faults.append(
            Fault(file, None, "", f"must be at most {MAX_BYTES} bytes", f"{len(text.encode())}")
        )
        return document
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            document.faults.append(Fault(file, 1, "", "must not be empty"))
        elif (fault := _too_large(node, file)) is not None:
            document.faults.append(fault)
        else:
            document.value = _Reader(loader, document).value(node, ())
    except yaml.YAMLError as error:
        document.faults.append(_syntax_fault(error, file))
    except RecursionError:
        document.faults.append(Fault(file, None, "", "is nested too deeply"))
    finally:
        if loader is not None:
            loader.dispose()
    return document


def _syntax_fault(error: yaml.YAMLError, file: str) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else None
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    rule = f"is not YAML: {problem}" + (f" ({context})" if context else "")
    hint = None
    if "\\t" in str(problem) or "'\\t'" in str(problem):
        hint = "indent with spaces, not tabs"
    elif "mapping values are not allowed" in str(problem):
        hint = "put a text that holds ': ' in quotes"
    return Fault(file, line, "", rule, None, hint)


def _too_large(root: yaml.Node, file: str) -> Fault | None:
    """Counts what the document holds once its aliases are written out, without writing them out."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in open_nodes:
            raise yaml.constructor.ConstructorError(
                None, None, "an alias refers to what it is inside of", node.start_mark
            )
        if id(node) not in sizes:
            open_nodes.add(id(node))
            children: list[yaml.Node] = []
            if isinstance(node, yaml.SequenceNode):
                children = node.value
            elif isinstance(node, yaml.MappingNode):
                children = [child for pair in node.value for child in pair]
            sizes[id(node)] = 1 + sum(size(child) for child in children)
            open_nodes.discard(id(node))
        return sizes[id(node)]

    if (total := size(root)) <= MAX_VALUES:
        return None
    return Fault(
        file,
        root.start_mark.line + 1,
        "",
        f"must hold at most {MAX_VALUES} values with aliases written out",
        str(total),
    )


class _Reader:
    def __init__(self, loader: _Loader, document: Document) -> None:
        self._loader = loader
        self._document = document

    def value(self, node: yaml.Node, path: Path) -> Any:
        self._document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, i)) for i, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        try:
            return self._loader.construct_object(node)
        except (yaml.constructor.ConstructorError, ValueError, OverflowError):
            self._fault(
                node,
                path,
                "cannot be read as a value",
                f"{node.tag.rpartition(':')[2]} {node.value!r}",
                "only plain text, numbers, true, false, null, lists and mappings are read",
            )
            return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged |= self._merged(value_node, path)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(key_node, path, "keys must be text", "a list or a mapping")
                continue
            name = str(key_node.value)
            if name in result:
                first = self._document.lines[(*path, name)]
                self._fault(
                    key_node,
                    (*path, name),
                    "must not be given twice",
                    None,
                    f"it is already on line {first}",
                )
                continue
            self._document.lines[(*path, name)] = key_node.start_mark.line + 1
            result[name] = self.value(value_node, (*path, name))
        return merged | result

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        """`<<: *base` and `<<: [*first, *second]`, the earlier of which wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        result: dict[str, Any] = {}
        for source in reversed(sources):
            if isinstance(source, yaml.MappingNode):
                result |= self._mapping(source, path)
            else:
                self._fault(source, path, "'<<' must be given a mapping", repr(source.value))
        for name in result:  # a key of the mapping itself may still take over: its line wins
            self._document.lines.pop((*path, name), None)
        return result

    def _fault(
        self, node: yaml.Node, path: Path, rule: str, value: str | None, hint: str | None = None
    ) -> None:
        line = node.start_mark.line + 1
        self._document.unread.add(path)
        self._document.faults.append(
            Fault(self._document.file, line, key_text(path), rule, value, hint)
        )
