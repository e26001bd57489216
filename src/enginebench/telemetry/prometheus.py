"""Prometheus text, as engines serve it under /metrics: read, and asked for under our names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import httpx

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{.*\})?\s+(\S+)")
_TIMEOUT_S = 5.0


def parse(text: str) -> dict[str, float]:
    """Sample name -> value, summed over its label sets. Lines of another form are passed over, and
    so are values that are not finite."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.match(line)
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            values[match[1]] = values.get(match[1], 0.0) + value
    return values


def read_metrics(url: str, names: Mapping[str, str]) -> dict[str, float]:
    """Our names -> the engine's present values. `names` maps ours to the engine's; what it does not
    serve is left out, all of it when it cannot be asked."""
    try:
        response = httpx.get(url, timeout=_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError:
        return {}
    if response.status_code != 200:
        return {}
    values = parse(response.text)
    return {ours: values[theirs] for ours, theirs in names.items() if theirs in values}
