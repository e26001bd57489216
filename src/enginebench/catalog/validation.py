"""Pydantic's findings about a file, as one line with its place and the nearest known key."""

from __future__ import annotations

import difflib
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from enginebench.catalog.yaml_source import Loc, Source
from enginebench.errors import ConfigError

_T = TypeVar("_T")
_UNKNOWN_KEY = frozenset({"unexpected_keyword_argument", "extra_forbidden"})
_MISSING_KEY = frozenset({"missing", "missing_argument"})
_SHOWN_CHARS = 60


def validated(adapter: TypeAdapter[_T], source: Source) -> _T:
    """The file's content as the adapter's type. Raises ConfigError about its first fault."""
    try:
        return adapter.validate_python(source.data)
    except ValidationError as error:
        found = [(fault, source.place(fault["loc"])) for fault in error.errors(include_url=False)]
        # A misspelt key is also a missing one, and says more.
        fault, place = min(found, key=lambda f: (f[0]["type"] in _MISSING_KEY, f[1].line, f[1].column))
        raise ConfigError(_in_words(fault, adapter), place) from error


def nearest(word: str, known: list[str]) -> str:
    """`; did you mean 'model'?`, or the whole list where nothing is near."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known here: {', '.join(sorted(known)) or 'none'}"


def _in_words(fault: Any, adapter: TypeAdapter[Any]) -> str:
    loc: Loc = fault["loc"]
    path = ".".join(map(str, loc))
    if fault["type"] in _UNKNOWN_KEY:
        return f"unknown key {str(loc[-1])!r}" + nearest(str(loc[-1]), _known_keys(adapter, loc[:-1]))
    if fault["type"] in _MISSING_KEY:
        return f"`{path}` is missing"
    message = fault["msg"].removeprefix("Value error, ")
    got = repr(fault["input"])
    return f"`{path}`: {message[:1].lower()}{message[1:]} (got {got[:_SHOWN_CHARS]})"


def _known_keys(adapter: TypeAdapter[Any], loc: Loc) -> list[str]:
    """The keys that the type knows at `loc`, from its JSON schema."""
    schema = adapter.json_schema()
    node = schema
    for step in (*loc, None):
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        if step is None:
            break
        node = (
            node.get("properties", {}).get(step)
            or node.get("additionalProperties")
            or node.get("items")
            or {}
        )
    return list(node.get("properties", {}))
