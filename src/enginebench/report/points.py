"""The levels of a summary, arranged as the series that tables and charts show.

Repeats of one level are set side by side here: the number shown is their median, its bounds the
smallest and the largest of them. A number that one of the repeats does not have is missing as a
whole, so that a repeat in which all failed cannot disappear behind the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from enginebench.model.summary import Level, Summary, TargetSummary

FAILED_OUTCOMES = ("empty", "error", "truncated", "timeout", "rejected", "dropped")
"""`cancelled` is not among them: we cut those off ourselves, and they are shown as such."""

_WORST_FIRST = ("fail", "warn", "pass")


@dataclass(frozen=True, slots=True)
class Value:
    """One number to show. `n` is the smallest sample behind it; `note` says why it is missing."""

    value: float | None
    low: float | None
    high: float | None
    bounds: Literal["interval", "repeats"] | None
    """What `low` and `high` are: a 95 % interval, or the smallest and largest of the repeats."""
    n: int
    note: str | None


@dataclass(frozen=True, slots=True)
class Point:
    """One load level of one target: all its repeats."""

    level: float
    repeats: tuple[Level, ...]

    @property
    def used(self) -> tuple[Level, ...]:
        """The repeats that came to their end; all of them when none did."""
        return tuple(r for r in self.repeats if r.complete) or self.repeats

    @property
    def complete(self) -> bool:
        return any(r.complete for r in self.repeats)


@dataclass(frozen=True, slots=True)
class Series:
    """One target under one kind of load: a line in every chart, a table of its own."""

    position: int
    """Of the target in the summary; gives the colour."""
    target: TargetSummary
    load: str
    points: tuple[Point, ...]
    """By rising level."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    verdict: str
    value: Any
    advice: str


def all_series(summary: Summary) -> tuple[Series, ...]:
    """In the order of the summary; targets of which nothing was measured have none."""
    found = []
    for position, target in enumerate(summary.targets):
        for load in dict.fromkeys(level.load for level in target.levels):
            levels = [level for level in target.levels if level.load == load]
            points = tuple(
                Point(value, tuple(r for r in levels if r.level == value))
                for value in sorted({level.level for level in levels})
            )
            found.append(Series(position, target, load, points))
    return tuple(found)


def value(point: Point, metric: str, stat: str) -> Value:
    """One statistic of one metric: of a single repeat as it is, of several their median."""
    samples = [_of_repeat(level, metric, stat) for level in point.used]
    missing = [s for s in samples if s.value is None]
    if missing:
        fewest = min(missing, key=lambda s: s.n)
        note = fewest.note
        if len(missing) < len(samples):
            note = f"missing in {len(missing)} of {len(samples)} repeats" + (f": {note}" if note else "")
        return Value(None, None, None, None, fewest.n, note)
    if len(samples) == 1:
        return samples[0]
    values = [s.value for s in samples if s.value is not None]
    return Value(
        median(values), min(values), max(values), "repeats", min(s.n for s in samples), samples[0].note
    )


def _of_repeat(level: Level, metric: str, stat: str) -> Value:
    found = level.metrics.get(metric)
    if found is None:
        return Value(None, None, None, None, 0, "not measured")
    one = found.stats.get(stat)
    if one is None:
        return Value(None, None, None, None, found.n, found.note)
    bounds: Literal["interval"] | None = "interval" if None not in (one.low, one.high) else None
    return Value(one.value, one.low, one.high, bounds, found.n, found.note)


def counts(point: Point) -> Mapping[str, int]:
    """Requests by outcome over all repeats, broken-off ones included; `total` beside them."""
    return sum((Counter(level.counts) for level in point.repeats), Counter())


def n_failed(point: Point) -> int:
    return sum(counts(point).get(outcome, 0) for outcome in FAILED_OUTCOMES)


def errors(point: Point) -> Mapping[str, int]:
    """Failed requests by error kind over all repeats, the most frequent first."""
    total = sum((Counter(level.errors) for level in point.repeats), Counter[str]())
    return dict(sorted(total.items(), key=lambda kind: (-kind[1], kind[0])))


def checks(point: Point) -> tuple[CheckResult, ...]:
    """Each check once, with its worst verdict over the repeats."""
    worst: dict[str, CheckResult] = {}
    for level in point.repeats:
        for found in level.checks:
            check = CheckResult(
                found["name"], found["verdict"], found.get("value"), found.get("advice") or ""
            )
            before = worst.get(check.name)
            if before is None or _WORST_FIRST.index(check.verdict) < _WORST_FIRST.index(before.verdict):
                worst[check.name] = check
    return tuple(worst.values())


def n_repeats(points: tuple[Point, ...]) -> tuple[int, int]:
    """Fewest and most repeats behind the points."""
    sizes = [len(point.used) for point in points]
    return min(sizes), max(sizes)
