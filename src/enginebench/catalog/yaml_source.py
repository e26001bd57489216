"""YAML with the place of every key, so that an error can point at the line it is about.

Scalars follow the YAML 1.2 core schema: only `true` and `false` are booleans (`on`, `off`, `yes`
and `no` are text, which engines take as flag values), `1e3` is a number, `1:30` and `2026-01-01`
are text. Keys are always text. Every JSON file reads, tabs included. Not supported: tags other
than the plain scalar ones, `<<` merging, several documents in one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from enginebench.errors import ConfigError, Place

Loc = tuple[str | int, ...]
"""Path to a value: keys and list positions from the top, e.g. ("load", 0, "duration")."""

_TAG = "tag:yaml.org,2002:"
_IMPLICIT = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
}
_HINTS = (
    ("'\\t'", "YAML does not allow a tab here; use spaces"),
    ("mapping values are not allowed", "a value that holds ': ' needs quotes, and keys need equal indent"),
    ("character '@'", "a value that starts with @ needs quotes"),
    ("character '`'", "a value that starts with ` needs quotes"),
    ("character '%'", "a value that starts with % needs quotes"),
    ("expected a single document", "only one document to a file: remove the `---` and what follows it"),
    ("undefined alias", "a value that starts with * needs quotes"),
    ("expected <block end>", "the indent of this line matches no line above it"),
    ("unexpected end of stream", "a quote or bracket is opened and never closed"),
)


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalar rules of YAML 1.2; used for its node tree only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class-level table)


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes text which either version of YAML would take for a number."""


for _name, _pattern in _IMPLICIT.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), None)
_Loader.yaml_implicit_resolvers[""] = _Loader.yaml_implicit_resolvers[None]  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class Source:
    """A file's content as plain Python, and where each part of it stands."""

    data: dict[str, Any]
    _places: Mapping[Loc, Place] = field(repr=False)

    def place(self, loc: Loc) -> Place:
        """Where the key (or list item) at `loc` stands; for a path that the file does not have,
        the nearest part above it."""
        while loc not in self._places:
            loc = loc[:-1]
        return self._places[loc]


def read_yaml(path: Path) -> Source:
    """Read a YAML or JSON file. Raises ConfigError, with its place, for whatever is wrong with it."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text; save it as UTF-8") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, file: str) -> Source:
    """As `read_yaml`, from text; `file` is the name that errors give."""
    root = _compose(text, file)
    if root is None:
        raise ConfigError("the file is empty", Place(file, 1, 1))
    places: dict[Loc, Place] = {}
    data = _Builder(file, places).build(root, ())
    if not isinstance(data, dict):
        raise ConfigError("expected `key: value` lines at the top of the file", places[()])
    return Source(data, places)


def parse_value(text: str, name: str) -> Any:
    """One YAML value, as typed on the command line. Raises ConfigError that begins with `name`."""
    root = _compose(text, name)
    return None if root is None else _Builder(name, {}).build(root, ())


def write_yaml(data: Mapping[str, Any]) -> str:
    """Text that `parse_yaml` reads back as `data`; innermost lists and mappings on one line."""
    return yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )


def _compose(text: str, file: str) -> yaml.Node | None:
    if "\t" in text and _is_json(text):
        # JSON may be indented with tabs, YAML may not. A JSON string cannot hold a raw tab, so
        # this changes nothing but white space, and no column.
        text = text.replace("\t", " ")
    try:
        node: yaml.Node | None = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else None
        raise ConfigError(_explain(error), place) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise ConfigError("not YAML: a control character stands here", Place(file, line, column)) from error
    except RecursionError as error:
        raise ConfigError("nested too deeply", Place(file, 1, 1)) from error
    return node


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _explain(error: yaml.MarkedYAMLError) -> str:
    words = ", ".join(part for part in (error.context, error.problem) if part)
    hint = next((hint for sign, hint in _HINTS if sign in words), None)
    return f"{hint} ({words})" if hint else f"not valid YAML: {words}"


class _Builder:
    """Turns nodes into plain Python and notes where each stood."""

    def __init__(self, file: str, places: dict[Loc, Place]) -> None:
        self._file, self._places = file, places
        self._open: set[int] = set()

    def build(self, node: yaml.Node, loc: Loc) -> Any:
        place = self._place(node)
        # A mapping's value is found at its key, which is already noted.
        self._places.setdefault(loc, place)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, place)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            raise ConfigError(f"the tag {node.tag} is not supported; remove it", place)
        if id(node) in self._open:
            raise ConfigError("an alias refers to the value it is part of", place)
        self._open.add(id(node))
        built = (
            self._mapping(node, loc)
            if isinstance(node, yaml.MappingNode)
            else [self.build(item, (*loc, i)) for i, item in enumerate(node.value)]
        )
        self._open.remove(id(node))
        return built

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError("a key must be plain text", place)
            key = _text(str(key_node.value), place)
            if key in data:
                first = self._places[(*loc, key)]
                raise ConfigError(f"key {key!r} stands twice (first at line {first.line})", place)
            self._places[(*loc, key)] = place
            data[key] = self.build(value_node, (*loc, key))
        return data

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._file, node.start_mark.line + 1, node.start_mark.column + 1)


def _text(text: str, place: Place) -> str:
    """JSON escapes write characters beyond the first plane as two surrogates; joins them."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise ConfigError("half a surrogate pair is not text", place) from error


def _scalar(node: yaml.ScalarNode, place: Place) -> Any:
    kind, text = node.tag.removeprefix(_TAG), str(node.value)
    try:
        match kind:
            case "str":
                return _text(text, place)
            case "null":
                return None
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case "int":
                return int(text, 0 if text.startswith(("0x", "0o")) else 10)
            case "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except (ValueError, KeyError) as error:
        raise ConfigError(f"{text[:40]!r} is not a value of type {kind}", place) from error
    raise ConfigError(f"the tag {node.tag} is not supported; remove it", place)
