"""`enginebench report`: rebuild what is derived from a run folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer


class Format(StrEnum):
    html = "html"
    md = "md"
    csv = "csv"
    json = "json"
    table = "table"


def report(
    folders: list[Path] = typer.Argument(..., metavar="RUN...", help="Run folders (reports/<time>_<name>)."),
    format_: Format = typer.Option(
        None, "--format", help="Print this format instead of rebuilding the folder's files."
    ),
) -> None:
    """Rebuild summary.json, report.md and report.html from the records, and print the table.

    A run that died is recovered first: all but its last seconds are in its spool.
    """
    for folder in folders:
        _one(folder, format_)


def _one(folder: Path, format_: Format | None) -> None:
    from enginebench.analysis.timeline import details
    from enginebench.cli.show import show, table
    from enginebench.report.exports import csv
    from enginebench.report.html import html
    from enginebench.report.markdown import markdown
    from enginebench.store.derived import json_bytes, write_reports
    from enginebench.store.loading import load

    run = load(folder)
    match format_:
        case None:
            show(*write_reports(run))
        case Format.table:
            table(run.summary())
        case Format.html:
            typer.echo(html(run.summary(), run.meta, details(run)))
        case Format.md:
            typer.echo(markdown(run.summary(), run.meta))
        case Format.csv:
            typer.echo(csv(run.summary()), nl=False)
        case Format.json:
            typer.echo(json_bytes(run.summary()), nl=False)
