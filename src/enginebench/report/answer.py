"""The answer in words, before any table: the best level of each target and what a user felt there."""

from __future__ import annotations

from dataclasses import dataclass

from enginebench.model.summary import Summary
from enginebench.report import points
from enginebench.report.comparable import unequal_work
from enginebench.report.findings import check_title
from enginebench.report.points import Point, Series, all_series, n_repeats
from enginebench.report.tables import LOAD_TITLES, Cell, level_text, shown
from enginebench.report.text import clean, listed, number, some

REPEATS_FOR_A_VERDICT = 5


@dataclass(frozen=True, slots=True)
class Best:
    """The level of highest output throughput that came to its end and whose checks did not fail."""

    point: Point
    throughput: float
    passed_over: tuple[Point, ...]
    """Levels with a higher throughput, left out because a check failed there or they broke off."""


def best(series: Series) -> Best | None:
    """None when no level has a throughput. When no level passes, those that came to their end go
    before those that broke off, and what failed is for the reader to see (`failed_checks`)."""
    rated = [
        (throughput, point)
        for point in series.points
        if (throughput := points.value(point, "output_throughput", "value").value) is not None
    ]
    if not rated:
        return None
    whole = [one for one in rated if one[1].complete] or rated
    valid = [one for one in whole if not failed_checks(one[1])] or whole
    throughput, chosen = max(valid, key=lambda one: one[0])
    over = tuple(point for other, point in rated if other > throughput)
    return Best(chosen, throughput, over)


def _why(passed_over: tuple[Point, ...]) -> str:
    reasons = {"a check failed there" if failed_checks(point) else "it broke off" for point in passed_over}
    return " or ".join(sorted(reasons))


def failed_checks(point: Point) -> list[str]:
    return [check.name for check in points.checks(point) if check.verdict == "fail"]


def answer(summary: Summary) -> list[str]:
    """One paragraph a target, in plain text, and one that sets the targets side by side
    where they were given the same work."""
    everything = all_series(summary)
    paragraphs = [_paragraph(series) for series in everything] + unmeasured(summary)
    beside = None if unequal_work(summary) else side_by_side(everything)
    return [*paragraphs, beside] if beside else paragraphs


def unmeasured(summary: Summary) -> list[str]:
    """A sentence for each target that was not measured to its end; the reason is given elsewhere."""
    sentences = []
    for target in summary.targets:
        if target.problem:
            sentences.append(f"{clean(target.name)} was not measured to its end.")
        elif not target.levels:
            sentences.append(f"{clean(target.name)}: no level was measured.")
    return sentences


def _paragraph(series: Series) -> str:
    found = best(series)
    if found is None:
        return headline(series)
    cautious = caution(series, found)
    sentences = [
        headline(series),
        _felt(found.point),
        failures(found.point),
        *([cautious] if cautious else []),
    ]
    return " ".join(sentences)


def headline(series: Series) -> str:
    """The one sentence about a target: its highest output throughput and where it came."""
    name = clean(series.target.name)
    found = best(series)
    if found is None:
        total = sum(points.counts(point).get("total", 0) for point in series.points)
        failed = sum(points.n_failed(point) for point in series.points)
        if not total:
            return f"{name} has no throughput to give: no request was measured."
        return f"{name} has no throughput to give: {failed:,} of {some(total, 'request')} failed."
    load = LOAD_TITLES.get(series.load, series.load)
    return (
        f"{name} gave its highest output throughput, {number(found.throughput)} tok/s, "
        f"at {load} {level_text(found.point)}."
    )


def caution(series: Series, found: Best) -> str | None:
    """What failed checks mean for the headline."""
    load = LOAD_TITLES.get(series.load, series.load)
    if failing := failed_checks(found.point):
        names = listed(check_title(name) for name in failing)
        return f"Do not rely on it: at {load} {level_text(found.point)} a check failed ({names})."
    if found.passed_over:
        levels = listed(level_text(point) for point in found.passed_over)
        return f"A higher number at {load} {levels} does not count: {_why(found.passed_over)}."
    return None


def _felt(point: Point) -> str:
    ttft, ttft_p99 = stat(point, "ttft", "p50"), stat(point, "ttft", "p99")
    speed, gap = stat(point, "per_user_tps", "p50"), stat(point, "icl", "p99")
    return (
        f"There the first token came within {with_unit(ttft, 'ms')} for half of the requests "
        f"(p99 {with_unit(ttft_p99, 'ms')}); a user then read {with_unit(speed, 'tok/s')} (p50), "
        f"with gaps between chunks of {with_unit(gap, 'ms')} (p99)."
    )


def failures(point: Point) -> str:
    counts = points.counts(point)
    total, failed = counts.get("total", 0), points.n_failed(point)
    return (
        f"{failed:,} of {some(total, 'request')} failed." if failed else f"None of {total:,} requests failed."
    )


def side_by_side(everything: tuple[Series, ...]) -> str | None:
    """The ratio of the targets' best throughputs, and what such a ratio does not prove. None for a
    single target, and where the targets had different kinds of load."""
    rated = [(found.throughput, series) for series in everything if (found := best(series))]
    if len({series.position for _, series in rated}) < 2 or len({series.load for _, series in rated}) > 1:
        return None
    (most, first), *others = sorted(rated, key=lambda one: -one[0])
    ratios = [f"{number(most / less)} times that of {clean(s.target.name)}" for less, s in others if less]
    if not ratios:
        return None
    fewest, _ = n_repeats(tuple(point for _, series in rated for point in series.points))
    verdict = "Whether a difference is more than chance is not tested here"
    if fewest < REPEATS_FOR_A_VERDICT:
        verdict += (
            f": that takes at least {REPEATS_FOR_A_VERDICT} interleaved repeats, and this run has {fewest}"
        )
    return (
        f"At their best levels, the output throughput of {clean(first.target.name)} was {listed(ratios)}. "
        f"{verdict}."
    )


def stat(point: Point, metric: str, name: str) -> Cell:
    return shown(points.value(point, metric, name))


def with_unit(cell: Cell, unit: str) -> str:
    return cell.text if cell.value is None else f"{cell.text} {unit}"
