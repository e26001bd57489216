"""The report as one HTML file that needs nothing else: no server, no network, no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from enginebench.model.details import Details
from enginebench.model.summary import Summary, TargetSummary
from enginebench.report import about, answer, points
from enginebench.report.charts import DASHES, SYMBOLS, charts
from enginebench.report.comparable import parity, unequal_work
from enginebench.report.detail_charts import choices, detail_charts
from enginebench.report.findings import (
    check_title,
    check_value,
    client_delay_line,
    cut_off_line,
    error_rows,
    findings,
)
from enginebench.report.points import Series, all_series, n_repeats
from enginebench.report.tables import (
    LOAD_TITLES,
    Column,
    cell,
    is_latency,
    level_text,
    measured_columns,
    remarks,
)
from enginebench.report.text import clean, number, some, whole

# The only file access of this package: the templates, and plotly's script below, are parts of the
# installed program, as fixed as its code.
_TEMPLATES = Environment(
    loader=PackageLoader("enginebench.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def html(summary: Summary, meta: Mapping[str, Any], details: Details | None = None) -> str:
    """The whole report; `meta` is run.json, and what it lacks is left out. Without `details` there are
    no charts of distributions and of time.

    Nearly all of its 5 MB is plotly's script, which is embedded once.
    """
    from plotly.offline import get_plotlyjs

    return page(summary, meta, get_plotlyjs(), details)


def page(summary: Summary, meta: Mapping[str, Any], plotly_js: str, details: Details | None = None) -> str:
    """The report around a given plotly script."""
    everything = all_series(summary)
    detailed = detail_charts(details, summary) if details else []
    return _TEMPLATES.get_template("report.html.j2").render(
        plotly_js=Markup(plotly_js),
        name=clean(summary.name),
        incomplete=about.incomplete(summary.status),
        facts=_facts(summary, everything),
        unequal=unequal_work(summary),
        parity=parity(summary),
        parity_rows=[(f"{check.title}: {check.verdict}", check.detail) for check in parity(summary)],
        notes=[clean(note) for note in summary.notes],
        lead=_lead(summary, everything),
        cards=[_card(i, target, everything) for i, target in enumerate(summary.targets)],
        legend=[_key(position, target) for position, target in enumerate(summary.targets) if target.levels],
        charts=[asdict(chart) for chart in charts(everything)],
        distributions=[asdict(chart) for chart in detailed if chart.choices],
        choices=choices(detailed),
        over_time=[asdict(chart) for chart in detailed if not chart.choices],
        numbers=[_target_numbers(series, measured_columns(everything)) for series in everything],
        checks=[_checks(series) for series in everything],
        errors=[(_key(s.position, s.target), rows) for s in everything if (rows := error_rows(s))],
        about_run=about.run_rows(meta),
        environment=about.environment_rows(meta) or [("host", clean(summary.host))],
        served=[
            (clean(str(target.get("name"))), about.target_rows(target))
            for target in meta.get("targets") or []
        ],
        differences=about.differences(meta),
        reproduce=about.reproduce(meta),
        scenario=about.scenario_yaml(meta),
        definitions=about.DEFINITIONS,
        meanings=dict(about.DEFINITIONS),
        definitions_version=clean(summary.definitions),
    )


def _facts(summary: Summary, everything: Sequence[Series]) -> list[str]:
    """What was run, in a few words each, for the line under the title."""
    facts = [clean(summary.created_utc), clean(summary.host), some(len(summary.targets), "target")]
    for load in dict.fromkeys(series.load for series in everything):
        levels = sorted({point.level for s in everything if s.load == load for point in s.points})
        span = whole(levels[0]) if len(levels) == 1 else f"{whole(levels[0])} to {whole(levels[-1])}"
        facts.append(f"{LOAD_TITLES.get(load, clean(load))} {span}")
    if everything:
        _, most = n_repeats(tuple(point for series in everything for point in series.points))
        facts.append(some(most, "repeat"))
    return [fact for fact in facts if fact]


def _lead(summary: Summary, everything: tuple[Series, ...]) -> list[str]:
    side_by_side = None if unequal_work(summary) else answer.side_by_side(everything)
    sentences = [side_by_side] if side_by_side else [answer.headline(series) for series in everything]
    return sentences + answer.unmeasured(summary)


def _key(position: int, target: TargetSummary) -> dict[str, Any]:
    """Name of a target with what marks it in every chart."""
    return {
        "name": clean(target.name),
        "colour": position % len(SYMBOLS),
        "symbol": SYMBOLS[position % len(SYMBOLS)],
        "dash": DASHES[position // len(SYMBOLS) % len(DASHES)],
    }


def _card(position: int, target: TargetSummary, everything: Sequence[Series]) -> dict[str, Any]:
    facts = [clean(fact) for fact in (target.engine, target.model or "", target.endpoint) if fact]
    own = [series for series in everything if series.position == position]
    problem, *log = about.problem_lines(target.problem) if target.problem else [""]
    return {
        "key": _key(position, target),
        "facts": facts,
        "problem": problem,
        "log": log,
        "best": [_best(series) for series in own],
    }


def _best(series: Series) -> dict[str, Any]:
    found = answer.best(series)
    if found is None:
        return {"sentence": answer.headline(series)}
    point = found.point
    felt = [
        ("first token", "TTFT", "ttft", "ms"),
        ("per user", "per user", "per_user_tps", "tok/s"),
        ("between chunks", "ICL", "icl", "ms"),
        ("end to end", "E2E", "e2e", "ms"),
    ]
    return {
        "sentence": None,
        "throughput": number(found.throughput),
        "level": f"{LOAD_TITLES.get(series.load, clean(series.load))} {level_text(point)}",
        "felt": [
            (title, term, unit, [(name, answer.stat(point, metric, name)) for name in ("p50", "p99")])
            for title, term, metric, unit in felt
        ],
        "failures": answer.failures(point),
        "has_failures": points.n_failed(point) > 0,
        "caution": answer.caution(series, found),
    }


def _target_numbers(series: Series, columns: Sequence[Column]) -> dict[str, Any]:
    """All levels of a target as two tables, so that they fit a screen and a sheet of paper."""
    fewest, most = n_repeats(series.points)
    repeats = f"{fewest} to {most}" if fewest < most else most
    notes = [
        f"median of {repeats} repeats, the smallest and the largest below it" if most > 1 else None,
        client_delay_line(series),
        cut_off_line(series),
        None if all(point.complete for point in series.points) else "* broken off before its end",
        *remarks(series),
    ]
    load = LOAD_TITLES.get(series.load, clean(series.load))
    parts = [
        ("throughput", [column for column in columns if not is_latency(column)]),
        ("latency", [column for column in columns if is_latency(column)]),
    ]
    return {
        "key": _key(series.position, series.target),
        "tables": [(title, _table(series, members, load)) for title, members in parts],
        "notes": list(filter(None, notes)),
    }


def _table(series: Series, columns: Sequence[Column], load: str) -> dict[str, Any]:
    left_of = ["", *(column.group for column in columns)]
    return {
        "load": load,
        "groups": [(group, len(list(members))) for group, members in groupby(columns, key=lambda c: c.group)],
        "columns": [
            (" ".join(filter(None, (c.part, c.unit))), f"{c.metric or 'requests'}-{c.stat}", c.group != left)
            for c, left in zip(columns, left_of, strict=False)
        ],
        "rows": [(level_text(point), [cell(point, column) for column in columns]) for point in series.points],
    }


def _checks(series: Series) -> dict[str, Any]:
    """A strip of verdicts, check by level, and one line for each that did not pass."""
    by_point = [{check.name: check for check in points.checks(point)} for point in series.points]
    names = dict.fromkeys(name for found in by_point for name in found)
    strip = []
    for name in names:
        verdicts = []
        for found in by_point:
            check = found.get(name)
            verdicts.append(
                (check.verdict, check_value(name, check.value)) if check else ("none", "not checked")
            )
        strip.append((check_title(name), verdicts))
    return {
        "key": _key(series.position, series.target),
        "load": LOAD_TITLES.get(series.load, clean(series.load)),
        "levels": [level_text(point) for point in series.points],
        "strip": strip,
        "findings": findings(series),
    }
