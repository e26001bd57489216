"""How a scenario writes lengths: 512, {mean: 512, stdev: 100, min: 16, max: 2048}, {uniform: [16, 512]}."""

from __future__ import annotations

import math
from typing import Any

from enginebench.catalog.validation import nearest
from enginebench.model.scenario import TokenCount

_MAX_TOKENS = 10_000_000
_UNBOUNDED = TokenCount("normal", 0).high
_NORMAL_KEYS = ["mean", "stdev", "min", "max"]


def read_token_count(value: Any) -> TokenCount:
    """Raises ValueError, in words for the person, when `value` is none of the three forms."""
    if not isinstance(value, dict):
        n = _whole(value, "it")
        return TokenCount("fixed", n)
    if "uniform" in value:
        return _uniform(value)
    for key in value:
        if key not in _NORMAL_KEYS:
            raise ValueError(f"unknown key {key!r}" + nearest(key, [*_NORMAL_KEYS, "uniform"]))
    for key in ("mean", "stdev"):
        if key not in value:
            raise ValueError(f"`{key}` is missing; a normal length needs mean and stdev")
    low = _whole(value.get("min", 1), "min")
    high = _whole(value["max"], "max") if "max" in value else _UNBOUNDED
    mean, stdev = _number(value["mean"], "mean"), _number(value["stdev"], "stdev")
    if stdev < 0:
        raise ValueError(f"stdev must be 0 or more, not {stdev:g}")
    if not max(1, low) <= mean <= min(high, _MAX_TOKENS):
        raise ValueError(f"mean must lie between min and max, and {mean:g} does not")
    return TokenCount("normal", mean, stdev, low, high)


def plain_token_count(count: TokenCount) -> int | dict[str, Any]:
    """The form that `read_token_count` reads back."""
    if count.kind == "fixed":
        return int(count.mean)
    if count.kind == "uniform":
        return {"uniform": [count.low, count.high]}
    bounds = {"min": count.low} if count.low > 1 else {}
    if count.high != _UNBOUNDED:
        bounds["max"] = count.high
    return {"mean": _tidy(count.mean), "stdev": _tidy(count.stdev), **bounds}


def _tidy(number: float) -> float:
    return int(number) if number == int(number) else number


def _uniform(value: dict[str, Any]) -> TokenCount:
    bounds = value["uniform"]
    if len(value) > 1 or not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError("a uniform length is written {uniform: [lowest, highest]}")
    low, high = (_whole(bound, "uniform") for bound in bounds)
    if low > high:
        raise ValueError(f"the lowest of a uniform length comes first: [{high}, {low}]")
    return TokenCount("uniform", (low + high) / 2, low=low, high=high)


def _whole(value: Any, name: str) -> int:
    number = _number(value, name)
    if number != int(number) or not 1 <= number <= _MAX_TOKENS:
        raise ValueError(f"{name} must be a whole number of tokens from 1 to {_MAX_TOKENS}, not {number:g}")
    return int(number)


def _number(value: Any, name: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"{name} must be a number of tokens, {{mean, stdev, min, max}} or {{uniform: [a, b]}}"
            if name == "it"
            else f"{name} must be a number"
        )
    return number
