"""The report as Markdown, for a pull request or a wiki. Foreign text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from enginebench.model.summary import Summary
from enginebench.report import about
from enginebench.report.answer import answer
from enginebench.report.comparable import parity, parity_line, unequal_work
from enginebench.report.findings import (
    client_delay_line,
    cut_off_line,
    error_rows,
    finding_line,
    findings,
)
from enginebench.report.points import Series, all_series, n_repeats
from enginebench.report.tables import (
    LOAD_TITLES,
    MARKDOWN_RANK,
    cell,
    heading,
    level_text,
    ranked_columns,
    remarks,
)
from enginebench.report.text import clean, markdown_code, markdown_text


def markdown(summary: Summary, meta: Mapping[str, Any]) -> str:
    """`meta` is run.json; what it lacks is left out."""
    everything = all_series(summary)
    lines = [f"# {markdown_text(summary.name)}", "", *_opening(summary)]
    lines += ["## Results", ""]
    for position, target in enumerate(summary.targets):
        own = [series for series in everything if series.position == position]
        for series in own:
            lines += _of_series(series, everything)
        if target.problem:
            lines += [*_problem(target.name, target.problem, with_title=not own), ""]
        elif not own:
            lines += [f"### {markdown_text(target.name)}", "", "No level was measured.", ""]
    lines += _parity(summary)
    lines += _checks(everything)
    lines += _environment(summary, meta)
    lines += _reproduce(meta)
    lines += ["## What the words mean", ""]
    lines += [f"- **{term}**: {markdown_text(meaning)}" for term, meaning in about.DEFINITIONS]
    return "\n".join(lines) + "\n"


def _opening(summary: Summary) -> Iterable[str]:
    if (incomplete := about.incomplete(summary.status)) is not None:
        yield from (f"**{markdown_text(incomplete)}**", "")
    if (unequal := unequal_work(summary)) is not None:
        yield from (f"**{markdown_text(unequal)}**", "")
    for note in summary.notes:
        yield from (f"**{markdown_text(note)}**", "")
    for paragraph in answer(summary):
        yield from (markdown_text(paragraph), "")


def _of_series(series: Series, everything: tuple[Series, ...]) -> Iterable[str]:
    columns = ranked_columns(everything, MARKDOWN_RANK)
    target = series.target
    facts = (markdown_text(fact) for fact in (target.engine, target.model or "", target.endpoint) if fact)
    yield from (f"### {markdown_text(target.name)}", "", ", ".join(facts), "")
    yield from _table(
        [LOAD_TITLES.get(series.load, series.load), *map(heading, columns)],
        [[level_text(point), *(cell(point, column).text for column in columns)] for point in series.points],
    )
    yield ""
    fewest, most = n_repeats(series.points)
    if most > 1:
        yield f"- median of {f'{fewest} to {most}' if fewest < most else most} repeats"
    yield f"- {markdown_text(client_delay_line(series))}"
    yield from (f"- failed: {markdown_text(f'{row.kind} {row.where}')}" for row in error_rows(series))
    if cut_off := cut_off_line(series):
        yield f"- {cut_off}"
    if not all(point.complete for point in series.points):
        yield "- \\* broken off before its end"
    yield from (f"- {markdown_text(remark)}" for remark in remarks(series))
    yield ""


def _table(headings: list[str], rows: list[list[str]]) -> Iterable[str]:
    """Padded, so that it reads as a table without being rendered too."""
    rows = [[markdown_text(text) for text in row] for row in (headings, *rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(headings))]
    for number, row in enumerate(rows):
        padded = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        yield f"| {' | '.join(padded)} |"
        if number == 0:
            yield f"| {' | '.join('-' * (width - 1) + ':' for width in widths)} |"


def _problem(name: str, problem: str, *, with_title: bool) -> Iterable[str]:
    first, *log = about.problem_lines(problem) or [""]
    if with_title:
        yield from (f"### {markdown_text(name)}", "")
    yield f"**Not measured to its end: {markdown_text(first)}**"
    if log:
        yield ""
        yield from (f"    {line}" for line in log)


def _parity(summary: Summary) -> Iterable[str]:
    if checks := parity(summary):
        yield from ("## Same work for every target", "")
        yield from (f"- {markdown_text(parity_line(check))}" for check in checks)
        yield ""


def _checks(everything: tuple[Series, ...]) -> Iterable[str]:
    yield from ("## Checks", "")
    found = [(series, finding) for series in everything for finding in findings(series)]
    for series, finding in found:
        yield f"- {markdown_text(f'{clean(series.target.name)}: {finding_line(finding)}')}"
    if not found:
        n = sum(len(level.checks) for series in everything for level in series.target.levels)
        yield f"All {n} checks passed." if n else "No check was made."
    yield ""


def _environment(summary: Summary, meta: Mapping[str, Any]) -> Iterable[str]:
    rows = [*about.run_rows(meta), *about.environment_rows(meta)] or [("host", clean(summary.host))]
    yield from ("## Environment", "")
    yield from (f"- {markdown_text(label)}: {markdown_text(text)}" for label, text in rows)
    yield ""
    for target in meta.get("targets") or []:
        yield from (f"### {markdown_text(str(target.get('name')))}: how it was served", "")
        for label, text in about.target_rows(target):
            yield f"- {label}: {markdown_code(text) if label in ('command', 'URL') else markdown_text(text)}"
        yield ""


def _reproduce(meta: Mapping[str, Any]) -> Iterable[str]:
    if command := about.reproduce(meta):
        yield from ("## How to reproduce", "", f"    {command}", "")
