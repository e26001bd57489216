"""Prometheus text, as engines serve it under /metrics: read, and asked for under our names."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType

import httpx

from enginebench.model.plan import Histogram

HISTOGRAMS = ("ttft_seconds", "itl_seconds", "e2e_seconds")
"""Which of our names are histograms; all others are gauges and counters."""
_SHARES = ("kv_usage",)
"""Of several label sets (replicas inside one server) shares are averaged, where others are summed."""

_LABEL = r'[^"{}]|"(?:[^"\\]|\\.)*"'
_SAMPLE = re.compile(rf"([A-Za-z_:][\w:]*)(?:\{{((?:{_LABEL})*)\}})?\s+(\S+)")
_LE = re.compile(r'(?:^|,)\s*le="([^"]*)"')
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one look at an engine's metrics gave, under our names; what it does not serve is left out."""

    values: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)


def snapshot(text: str, names: Mapping[str, str]) -> Snapshot:
    """What `text` says under our names. `names` maps ours to the engine's."""
    by_name: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for name, labels, value in _samples(text):
        by_name[name].append((labels, value))
    values, histograms = {}, {}
    for ours, theirs in names.items():
        if ours in HISTOGRAMS:
            found = _histogram(by_name, theirs)
            if found is not None:
                histograms[ours] = found
        elif samples := [value for _, value in by_name.get(theirs, ())]:
            values[ours] = sum(samples) / (len(samples) if ours in _SHARES else 1)
    return Snapshot(values, histograms)


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Where an engine tells its metrics, and which."""

    url: str
    names: Mapping[str, str]
    """Ours -> the engine's."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class MetricsReader:
    """Asks one engine again and again; use as a context manager.

    Every question has a connection of its own: servers close idle ones, and say so at the moment
    that one is used again.
    """

    def __init__(self, told: EngineMetrics, timeout_s: float = _TIMEOUT_S) -> None:
        self._url, self._names = told.url, told.names
        self._client = httpx.Client(
            headers=dict(told.headers),
            timeout=timeout_s,
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def read(self) -> Snapshot | None:
        """None when the engine cannot be asked, or answers with anything but metrics."""
        try:
            response = self._client.get(self._url)
        except httpx.HTTPError:
            return None
        return snapshot(response.text, self._names) if response.status_code == 200 else None

    def __enter__(self) -> MetricsReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()


def read_once(told: EngineMetrics) -> Snapshot:
    """The engine's present values; an empty snapshot when it cannot be asked."""
    with MetricsReader(told) as reader:
        return reader.read() or Snapshot()


def grown(before: Histogram, after: Histogram) -> Histogram | None:
    """What was observed between two looks. None when the buckets differ or a count fell: then the
    engine was started anew in between."""
    n = tuple(later - earlier for earlier, later in zip(before.n, after.n, strict=False))
    count = after.count - before.count
    if before.le != after.le or min(count, *n, count) < 0:
        return None
    seconds = None if before.sum is None or after.sum is None else after.sum - before.sum
    return Histogram(after.le, n, seconds, count)


def _samples(text: str) -> Iterator[tuple[str, str, float]]:
    """Name, text of the labels, value."""
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.match(line)
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if math.isfinite(value):
            yield match[1], match[2] or "", value


def _histogram(by_name: Mapping[str, list[tuple[str, float]]], name: str) -> Histogram | None:
    """Buckets with equal bounds are summed. None where there are no buckets: a summary has none."""
    buckets: dict[float, float] = {}
    for labels, value in by_name.get(f"{name}_bucket", ()):
        bound = _LE.search(labels)
        try:
            le = float(bound[1]) if bound else math.nan
        except ValueError:
            continue
        if not math.isnan(le):
            buckets[le] = buckets.get(le, 0.0) + value
    if math.inf not in buckets:
        return None
    total = buckets.pop(math.inf)
    les = sorted(buckets)
    seconds = [value for _, value in by_name.get(f"{name}_sum", ())]
    return Histogram(
        le=tuple(les),
        n=tuple(round(buckets[le]) for le in les),
        sum=sum(seconds) if seconds else None,
        count=round(total),
    )
