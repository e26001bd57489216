"""The command line. A command parses, calls one function, prints.

Heavy imports stay inside the functions: `enginebench --help` must answer at once.
"""

from __future__ import annotations

import errno
import os
import sys

import typer

import enginebench
from enginebench.cli import launch, mock, report, run
from enginebench.cli import list as list_command
from enginebench.errors import EnginebenchError, Interrupted

app = typer.Typer(
    name="enginebench",
    help="The test bench for LLM serving engines: true latency and throughput, with their error bars.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("report")(report.report)
app.command("mock")(mock.mock)
app.command("launch")(launch.launch)
app.command("list")(list_command.list_shipped)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(enginebench.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    pass


def main() -> None:
    """Entry point: turns our errors into one line and an exit code."""
    try:
        app()
    except (EnginebenchError, Interrupted) as error:
        print(f"enginebench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        # `enginebench list | head` is no failure, nor is a terminal that was closed meanwhile.
        os._exit(0)
