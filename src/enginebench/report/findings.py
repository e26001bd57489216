"""What a reader must know beside the numbers: checks that did not pass, errors, the client's own delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from enginebench.report import points
from enginebench.report.points import Point, Series
from enginebench.report.tables import LOAD_TITLES, level_text, shown
from enginebench.report.text import clean, number, some, whole

VERDICTS = ("fail", "warn", "pass")

# Every other check of `analysis.checks` has a share as its value.
COUNT_CHECKS = frozenset({"impossible_times", "clock_step", "few_samples"})
MS_CHECKS = frozenset({"client_delay"})

CUT_OFF_KINDS = frozenset({"cancelled", "interrupted"})
"""Error kinds of requests that we ended ourselves; they are told apart from failures."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that did not pass, on all the levels where it said the same."""

    verdict: str
    name: str
    where: str
    """`0.912 at concurrency 256`, `0.650 % at 32, 18.4 % at 64`."""
    advice: str


@dataclass(frozen=True, slots=True)
class ErrorRow:
    kind: str
    n: int
    where: str


def check_value(name: str, value: Any) -> str:
    """A check's value as a person reads it: most are shares, given in percent."""
    if value is None:
        return "n/a"
    if not isinstance(value, int | float):
        return clean(str(value))
    if name in COUNT_CHECKS:
        return whole(value)
    return f"{number(value)} ms" if name in MS_CHECKS else f"{number(100 * value)} %"


def check_title(name: str) -> str:
    return clean(name).replace("_", " ")


def findings(series: Series) -> list[Finding]:
    """Failed checks first, then warnings, each in the order of its first level."""
    grouped: dict[tuple[str, str, str], list[tuple[Point, Any]]] = {}
    for point in series.points:
        for check in points.checks(point):
            if check.verdict != "pass":
                key = (check.verdict, check.name, clean(check.advice))
                grouped.setdefault(key, []).append((point, check.value))
    found = [
        Finding(
            verdict,
            check_title(name),
            _where(series, [(point, check_value(name, value)) for point, value in where]),
            advice,
        )
        for (verdict, name, advice), where in grouped.items()
    ]
    return sorted(found, key=lambda finding: VERDICTS.index(finding.verdict))


def finding_line(finding: Finding) -> str:
    """`warn: occupancy 0.912 at concurrency 256. Measure longer ...`"""
    return f"{finding.verdict}: {finding.name} {finding.where}. {finding.advice}".rstrip()


def error_rows(series: Series) -> list[ErrorRow]:
    """Failed requests by error kind, the most frequent first, with the levels where they came."""
    where: dict[str, list[tuple[Point, int]]] = {}
    for point in series.points:
        for kind, n in points.errors(point).items():
            if kind not in CUT_OFF_KINDS:
                where.setdefault(kind, []).append((point, n))
    rows = [
        ErrorRow(
            clean(kind),
            sum(n for _, n in found),
            ", ".join(f"{n:,} at {level_text(point)}" for point, n in found),
        )
        for kind, found in where.items()
    ]
    return sorted(rows, key=lambda row: (-row.n, row.kind))


def cut_off_line(series: Series) -> str | None:
    """Requests that we ended ourselves, which count neither as ok nor as failed."""
    n = sum(points.counts(point).get("cancelled", 0) for point in series.points)
    return f"{some(n, 'request')} cut off at the end of a level: neither ok nor failed" if n else None


def client_delay_line(series: Series) -> str:
    """How late the client itself was at worst, over the levels: `client delay p99 0.12 ms at most ...`"""
    delays = [(points.value(point, "client_delay", "p99"), point) for point in series.points]
    known = [(found.value, found, point) for found, point in delays if found.value is not None]
    if known:
        _, worst, point = max(known, key=lambda one: one[0])
        words = f"client delay p99 {shown(worst).text} ms"
        words += f" at most (at {LOAD_TITLES.get(series.load, series.load)} {level_text(point)})"
    else:
        n = min((found.n for found, _ in delays), default=0)
        note = next((found.note for found, _ in delays if found.note), None)
        words = f"client delay n/a (n={n})" if n else f"client delay n/a{f': {clean(note)}' if note else ''}"
    shares = [
        check["value"]
        for level in series.target.levels
        if level.load == series.load
        for check in level.checks
        if check["name"] == "coalesced" and check["value"] is not None
    ]
    return f"{words}, coalesced {number(100 * max(shares))} %" if shares else words


def _where(series: Series, found: Sequence[tuple[Point, str]]) -> str:
    levels = [level_text(point) for point, _ in found]
    values = dict.fromkeys(value for _, value in found)
    if len(values) > 1:
        return ", ".join(f"{value} at {level}" for level, (_, value) in zip(levels, found, strict=True))
    where = f"at {LOAD_TITLES.get(series.load, clean(series.load))} {', '.join(levels)}"
    return f"{next(iter(values))} {'at every level' if len(found) == len(series.points) > 1 else where}"
