"""Derived numbers, as `summary.json` holds them. Rebuilt from the records at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Stat:
    """One number: None where it cannot be computed. `low` and `high` bound it with 95 % confidence
    where `method` names an interval method; they are None where there is none yet."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one level: percentiles by name (p50, p90, p95, p99), or a single `value`."""

    unit: str
    n: int
    """Samples behind it."""
    stats: Mapping[str, Stat]
    note: str | None = None
    """Why it is missing or special, in words: "needs per-chunk token counts"."""


@dataclass(frozen=True, slots=True)
class LevelWindow:
    kind: str
    """time: the planned window; held: by count, while the cap was held; whole: first sent to last done."""
    start_ns: int
    end_ns: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class Level:
    """One load level of one target in one repeat."""

    load: str
    level: float
    repeat: int
    complete: bool
    window: LevelWindow | None
    counts: Mapping[str, int]
    """Requests of phase `measure` by outcome, plus `total`."""
    errors: Mapping[str, int]
    """Failed requests of phase `measure` by error_kind."""
    metrics: Mapping[str, Metric]
    checks: tuple[Mapping[str, Any], ...]
    """{name, verdict: pass|warn|fail, value, advice}"""


@dataclass(frozen=True, slots=True)
class TargetSummary:
    name: str
    engine: str
    """Launcher title and version, or the URL of an attached endpoint."""
    model: str | None
    endpoint: str
    problem: str | None
    """Why the target could not be measured to its end."""
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    format: int
    definitions: str
    name: str
    status: str
    """done | interrupted | failed | crashed"""
    created_utc: str
    host: str
    targets: tuple[TargetSummary, ...]
    notes: tuple[str, ...] = ()
    parity: tuple[Mapping[str, Any], ...] = ()
    """Whether all targets were given the same work: {name, verdict: pass|warn|fail, detail}. A fail
    means that their speeds must not be compared. Empty where fewer than two were measured."""
