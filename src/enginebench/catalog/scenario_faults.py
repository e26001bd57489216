"""Values of the wrong type in a scenario, in words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from enginebench.catalog.scenario_settings import Settings
from enginebench.catalog.validation import nearest
from enginebench.catalog.yaml_source import Loc
from enginebench.errors import ConfigError

_WORDS = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list in [brackets]",
    "dataclass_type": "must be `key: value` lines",
    "dict_type": "must be `key: value` lines",
    "mapping_type": "must be `key: value` lines",
}
_BOOLEANS = frozenset({"keep_text", "allow_public", "unique_prompts", "ignore_eos", "models", "completion"})
_FREE = frozenset({"options", "env"})
_SHOWN_CHARS = 40


def in_words(error: ValidationError, settings: Settings) -> ConfigError:
    """The first fault that pydantic found, at its place in the file."""
    found = []
    for fault in error.errors(include_url=False):
        loc: Loc = fault["loc"]
        if fault["type"] in ("missing", "missing_argument"):
            found.append(settings.error(loc[:-1], f"`{loc[-1]}` is missing"))
            continue
        # Pydantic appends the branch of a union that it tried; the file has no such key.
        loc = _within(settings.data, loc)
        found.append(settings.error(loc, f"`{_name(loc)}` {_what(fault)}"))
    return min(found, key=lambda fault: (fault.place.line, fault.place.column) if fault.place else (0, 0))


def refuse_stray_values(settings: Settings) -> None:
    """`repeats: true` would otherwise count as 1, and JSON has no infinity."""
    for loc, value in _scalars(settings.data, ()):
        is_stray = isinstance(value, bool) and loc[-1] not in _BOOLEANS and _FREE.isdisjoint(loc)
        if is_stray or (isinstance(value, float) and not math.isfinite(value)):
            raise settings.error(loc, f"`{_name(loc)}` cannot be {_shown(value)}")


def _scalars(value: Any, loc: Loc) -> Iterator[tuple[Loc, Any]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _scalars(item, (*loc, key))
    else:
        yield loc, value


def _what(fault: Any) -> str:
    value, kind = fault["input"], fault["type"]
    if kind == "value_error":
        return f"cannot be used: {fault['ctx']['error']}"
    if kind == "literal_error":
        known = [word.strip(" '") for word in fault["ctx"]["expected"].replace(" or ", ",").split(",")]
        return f"cannot be {_shown(value)}{nearest(str(value), known)}"
    quotes = "; put it in quotes" if kind == "string_type" and isinstance(value, int | float) else ""
    return f"{_WORDS.get(kind, fault['msg'])}, not {_shown(value)}{quotes}"


def _within(data: Any, loc: Loc) -> Loc:
    for depth, part in enumerate(loc):
        inside = data if isinstance(data, dict) else dict(enumerate(data)) if isinstance(data, list) else {}
        if part not in inside:
            return loc[:depth]
        data = inside[part]
    return loc


def _name(loc: Loc) -> str:
    """The key, and for a list item the key of the list before its position."""
    first_key = max((i for i, part in enumerate(loc) if isinstance(part, str)), default=0)
    return ".".join(map(str, loc[first_key:]))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
