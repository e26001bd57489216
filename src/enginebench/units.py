"""Integer nanoseconds inside, people's units at the edge."""

from __future__ import annotations

import re

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|min|h)\s*")
_NS_PER = {
    "ns": 1,
    "us": NS_PER_US,
    "ms": NS_PER_MS,
    "s": NS_PER_S,
    "m": 60 * NS_PER_S,
    "min": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
}


def parse_duration_ns(text: str | int | float) -> int:
    """`"10s"`, `"500ms"`, `"1.5h"` or a bare number of seconds, in ns.

    Raises ValueError for anything else, negative values included.
    """
    if isinstance(text, bool):
        raise ValueError("a duration is a number with a unit, such as 10s or 500ms")
    if isinstance(text, int | float):
        return _whole_ns(text * NS_PER_S)
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write a number with a unit, such as 10s or 500ms")
    return _whole_ns(float(match[1]) * _NS_PER[match[2]])


def _whole_ns(ns: int | float) -> int:
    # Times are stored as int64.
    if not 0 <= ns < 2**63:
        raise ValueError("a duration cannot be negative, or longer than 292 years")
    return round(ns)


def format_duration(ns: int) -> str:
    """Shortest exact form that `parse_duration_ns` reads back: `10s`, `500ms`, `1h`."""
    for unit in ("h", "m", "s", "ms", "us"):
        if ns % _NS_PER[unit] == 0 and (ns or unit == "s"):
            return f"{ns // _NS_PER[unit]}{unit}"
    return f"{ns}ns"


def ms(ns: float) -> float:
    return ns / NS_PER_MS


def seconds(ns: float) -> float:
    return ns / NS_PER_S
