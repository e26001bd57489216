"""The one place that decides columns, headings and number formats; every output draws from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from enginebench.report import points
from enginebench.report.points import Point, Series, Value
from enginebench.report.text import clean, number, whole

LOAD_TITLES = {"concurrency": "concurrency"}
"""Kind of load -> what its level is called in a sentence and on an axis."""
LOAD_HEADINGS = {"concurrency": "conc."}

SMALL_SAMPLE = "n/a (n="
NOT_MEASURED = "n/a"


@dataclass(frozen=True, slots=True)
class Column:
    """A statistic of a metric, or (metric None) a count of the level itself."""

    group: str
    part: str
    unit: str
    metric: str | None
    stat: str
    rank: int
    """Where there is no room for all, the lowest ranks are shown; rank 1 always is."""
    is_extra: bool = False
    """Measured by some engines only: where it is not there, no word is lost about it."""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    value: float | None
    note: str | None = None
    """Why there is no value, or what else must be known about it."""
    bounds: str | None = None
    """`12.1 to 13.4` where the value has bounds."""
    mark: Literal["failed", "missing"] | None = None


# In the order in which they are shown. ICL is next to TTFT because a stream's reader feels those two.
COLUMNS = (
    Column("", "ok", "", None, "ok", 1),
    Column("", "failed", "", None, "failed", 1),
    Column("output", "", "tok/s", "output_throughput", "value", 1),
    Column("total", "", "tok/s", "total_throughput", "value", 7),
    Column("requests", "", "req/s", "request_rate", "value", 8),
    Column("in flight", "", "mean", "concurrency", "value", 15),
    Column("TTFT", "p50", "ms", "ttft", "p50", 1),
    Column("TTFT", "p90", "ms", "ttft", "p90", 17),
    Column("TTFT", "p95", "ms", "ttft", "p95", 14),
    Column("TTFT", "p99", "ms", "ttft", "p99", 3),
    Column("server TTFT", "p50", "ms", "server_ttft", "p50", 19, is_extra=True),
    Column("server TTFT", "p99", "ms", "server_ttft", "p99", 21, is_extra=True),
    Column("ICL", "p50", "ms", "icl", "p50", 1),
    Column("ICL", "p95", "ms", "icl", "p95", 16),
    Column("ICL", "p99", "ms", "icl", "p99", 4),
    Column("ITL", "p50", "ms", "itl", "p50", 9),
    Column("ITL", "p99", "ms", "itl", "p99", 12),
    Column("server ITL", "p50", "ms", "server_itl", "p50", 20, is_extra=True),
    Column("server ITL", "p99", "ms", "server_itl", "p99", 22, is_extra=True),
    Column("TPOT", "p50", "ms", "tpot", "p50", 5),
    Column("TPOT", "p99", "ms", "tpot", "p99", 13),
    Column("per user", "p50", "tok/s", "per_user_tps", "p50", 2),
    Column("per user", "p99", "tok/s", "per_user_tps", "p99", 18),
    Column("E2E", "p50", "ms", "e2e", "p50", 6),
    Column("E2E", "p99", "ms", "e2e", "p99", 11),
    Column("client delay", "p99", "ms", "client_delay", "p99", 10),
)
MARKDOWN_RANK = 6
"""Columns up to this rank stand in Markdown tables, which cannot scroll."""


def is_latency(column: Column) -> bool:
    """Of the engine, that is; the client's own delay is not."""
    return column.unit == "ms" and column.metric != "client_delay"


def cell(point: Point, column: Column) -> Cell:
    if column.metric is None:
        n = points.n_failed(point) if column.stat == "failed" else points.counts(point).get(column.stat, 0)
        return Cell(whole(n), n, mark="failed" if n and column.stat == "failed" else None)
    return shown(points.value(point, column.metric, column.stat))


def shown(found: Value) -> Cell:
    """A number, `n/a (n=12)` where the sample is too small, or `n/a` with the reason as note."""
    note = "; ".join(words for words in (found.note or "").split("; ") if SMALL_SAMPLE not in words) or None
    if found.value is None:
        text = f"{SMALL_SAMPLE}{found.n})" if found.n else NOT_MEASURED
        return Cell(text, None, note, mark="missing")
    bounds = None
    if found.low is not None and found.high is not None:
        bounds = f"{number(found.low)} to {number(found.high)}"
    return Cell(number(found.value), found.value, note, bounds)


def level_text(point: Point) -> str:
    """The level, with a star when it was broken off before its end."""
    return whole(point.level) + ("" if point.complete else "*")


def heading(column: Column) -> str:
    """On one line: `TTFT p50 (ms)`, `output (tok/s)`, `failed`."""
    words = " ".join(filter(None, (column.group, column.part)))
    return f"{words} ({column.unit})" if column.unit else words


def measured_columns(series: Sequence[Series]) -> tuple[Column, ...]:
    """The columns in which any level has a number, or too few samples for one; rank 1 in any case."""
    return tuple(
        column
        for column in COLUMNS
        if column.rank == 1
        or any(cell(point, column).text != NOT_MEASURED for one in series for point in one.points)
    )


def ranked_columns(series: Sequence[Series], highest_rank: int) -> tuple[Column, ...]:
    """Those of `measured_columns` up to a rank."""
    return tuple(column for column in measured_columns(series) if column.rank <= highest_rank)


def remarks(series: Series) -> list[str]:
    """What must be known about single numbers, why they are missing above all, with the levels where it
    holds: `ITL, TPOT: needs per-chunk token counts, at 1, 2`. Small samples are told in the cells."""
    where: dict[tuple[str, str], list[Point]] = {}
    for column in COLUMNS:
        for point in series.points:
            found = cell(point, column)
            note = None if column.is_extra and found.value is None else found.note
            if note and point not in where.setdefault((column.group, note), []):
                where[column.group, note].append(point)
    groups: dict[tuple[str, str], list[str]] = {}
    for (group, note), at in where.items():
        everywhere = len(at) == len(series.points)
        levels = "" if everywhere else f", at {', '.join(level_text(point) for point in at)}"
        groups.setdefault((note, levels), []).append(group)
    return [f"{', '.join(names)}: {clean(note)}{levels}" for (note, levels), names in groups.items()]
