"""What the charts of a report show beside the summary: derived from the records, never stored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """One latency of one level, all repeats together: its value at each of `SHARES`."""

    target: str
    load: str
    level: float
    metric: str
    """ttft | icl | e2e"""
    n: int
    values_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Track:
    """One quantity of one target over the time of the run. None separates stretches between which
    the target was not under load."""

    target: str
    quantity: str
    """in_flight | output_throughput | requests_waiting | kv_usage"""
    at_s: tuple[float | None, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed requests of one kind of one target, counted where they ended."""

    target: str
    kind: str
    at_s: tuple[float, ...]
    n: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Details:
    step_s: float
    """Width of the time steps over which tracks are means and failures are counted."""
    distributions: tuple[Distribution, ...]
    tracks: tuple[Track, ...]
    failures: tuple[Failures, ...]


SHARES: tuple[float, ...] = (
    0.0, 0.005, 0.01, 0.02, *(i / 40 for i in range(1, 39)), 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0,
)  # fmt: skip
"""Of the sample; closer together at its ends, where a distribution is judged."""
