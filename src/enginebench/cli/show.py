"""The end of a run on the terminal: the table, and where the report is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from rich.console import Console
from rich.text import Text

from enginebench.model.summary import Summary
from enginebench.report.terminal import final_table


class SteadyConsole(Console):
    """Goes on into nothing when its reader has gone (`| head`, a closed terminal): what is measured
    and stored, and how a run ends, does not depend on somebody watching."""

    def on_broken_pipe(self) -> None:
        # The descriptor itself, since the interpreter flushes the stream once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def note(text: str) -> None:
    """A remark beside the result, on stderr."""
    SteadyConsole(stderr=True, highlight=False).print(Text(text), soft_wrap=True)


def table(summary: Summary) -> None:
    console = SteadyConsole(highlight=False)
    console.print(final_table(summary, console.width))


def show(summary: Summary, report_path: Path) -> None:
    """The report's path comes last, alone on its line."""
    console = SteadyConsole(highlight=False)
    try:
        console.print(final_table(summary, console.width))
        console.print(Text(f"report: {report_path}"), soft_wrap=True)
    except OSError as error:
        if error.errno != errno.EIO:  # the terminal was closed
            raise
        console.on_broken_pipe()
