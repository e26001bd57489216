"""The final table of a run for a terminal. `live.py` has what is shown while it runs.

Foreign text enters as `rich.text.Text`, which knows no markup, after `text.clean` took its escape
sequences away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from enginebench.model.summary import Summary
from enginebench.report import about
from enginebench.report.about import problem_lines
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
    LOAD_HEADINGS,
    Cell,
    Column,
    cell,
    level_text,
    measured_columns,
    remarks,
)
from enginebench.report.text import clean

_GAP = 2
"""Columns apart: one of padding, one of the box's own."""
_VERDICT_STYLES = {"fail": "bold red", "warn": "yellow"}
_MARK_STYLES = {"failed": "bold red", "missing": "dim", None: ""}


def final_table(summary: Summary, width: int) -> RenderableType:
    """Answer, one table a target, and under each what must be known beside it; fits `width` columns.

    Down to 60 columns nothing of rank 1 is left out, as long as no number is wider than 10 characters.
    """
    parts: list[RenderableType] = []
    if (incomplete := about.incomplete(summary.status)) is not None:
        parts += _lines([(incomplete, "bold yellow")])
    if (unequal := unequal_work(summary)) is not None:
        parts += [*_lines([(unequal, "bold red")]), Text()]
    everything = all_series(summary)
    widths = _fitting(everything, width)
    for position, target in enumerate(summary.targets):
        own = [series for series in everything if series.position == position]
        for series in own:
            parts += [_title(series), _table(series, widths), *_lines(_beside(series)), Text()]
        if target.problem:
            parts += [*_problem(target.name, target.problem), Text()]
        elif not own:
            parts += [Text(f"{clean(target.name)}: no level was measured.", style="bold"), Text()]
    parts += _lines((clean(note), "yellow") for note in summary.notes)
    parts += _lines((parity_line(one), "yellow") for one in parity(summary) if one.verdict == "warn")
    parts += _lines((paragraph, "") for paragraph in answer(summary))
    return Group(*parts)


def _title(series: Series) -> Text:
    target = series.target
    facts = [clean(fact) for fact in (target.engine, target.model or "", target.endpoint) if fact]
    return Text.assemble((clean(target.name), "bold"), ("  " + ", ".join(facts), "dim"))


def _problem(name: str, problem: str) -> list[RenderableType]:
    first, *log = problem_lines(problem) or [""]
    head = Text.assemble((clean(name), "bold"), (f": {first}", "bold red"))
    return [head, *(Text(f"  {line}", style="dim") for line in log)]


def _fitting(everything: Sequence[Series], width: int) -> dict[Column, int]:
    """As many columns as fit, by rank, in their order, with their widths, the same for every target."""
    levels = [level_text(point) for series in everything for point in series.points]
    left = width - max(map(cell_len, [*levels, *_level_heading(everything)]), default=0)
    widths = {column: _width(column, everything) for column in measured_columns(everything)}
    chosen = set()
    for column in sorted(widths, key=lambda c: c.rank):
        needed = _GAP + widths[column]
        if column.rank == 1 or needed <= left:
            left -= needed
            chosen.add(column)
    return {column: width for column, width in widths.items() if column in chosen}


def _level_heading(everything: Sequence[Series]) -> list[str]:
    return [LOAD_HEADINGS.get(series.load, series.load) for series in everything]


def _width(column: Column, everything: Sequence[Series]) -> int:
    texts = [cell(point, column).text for series in everything for point in series.points]
    return max(map(cell_len, [*texts, *_heading(column).splitlines()]))


def _heading(column: Column) -> str:
    """Two lines: `TTFT` over `p50 ms`; a single word stands on the lower one."""
    lower = " ".join(filter(None, (column.part, column.unit)))
    return f"{column.group}\n{lower}"


def _table(series: Series, widths: Mapping[Column, int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(LOAD_HEADINGS.get(series.load, series.load), justify="right", no_wrap=True)
    for column, width in widths.items():
        table.add_column(_heading(column), justify="right", no_wrap=True, min_width=width)
    for point in series.points:
        cells = (_styled(cell(point, column)) for column in widths)
        table.add_row(Text(level_text(point)), *cells)
    return table


def _styled(one: Cell) -> Text:
    return Text(one.text, style=_MARK_STYLES[one.mark])


def _beside(series: Series) -> Iterable[tuple[str, str]]:
    """Lines under a table with their style: repeats, client's delay, checks, errors, missing numbers."""
    fewest, most = n_repeats(series.points)
    if most > 1:
        yield f"median of {f'{fewest} to {most}' if fewest < most else most} repeats", "dim"
    yield client_delay_line(series), "dim"
    for finding in findings(series):
        yield finding_line(finding), _VERDICT_STYLES[finding.verdict]
    for row in error_rows(series):
        yield f"failed: {row.kind} {row.where}", "red"
    if cut_off := cut_off_line(series):
        yield cut_off, "dim"
    if not all(point.complete for point in series.points):
        yield "* broken off before its end", "yellow"
    yield from ((remark, "dim") for remark in remarks(series))


def _lines(lines: Iterable[tuple[str, str]]) -> list[RenderableType]:
    return [Text(line, style=style) for line, style in lines]
