"""The end of a run on the terminal: the table, and where the report is."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from enginebench.model.summary import Summary
from enginebench.report.terminal import final_table


def table(summary: Summary) -> None:
    console = Console(highlight=False)
    console.print(final_table(summary, console.width))


def show(summary: Summary, report_path: Path) -> None:
    """The report's path comes last, alone on its line."""
    table(summary)
    Console(highlight=False).print(Text(f"report: {report_path}"), soft_wrap=True)
