"""`enginebench run`: a scenario, or an endpoint given on the command line, to a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from enginebench.errors import StorageError, UserError

if TYPE_CHECKING:
    from enginebench.model.scenario import Scenario
    from enginebench.model.summary import Summary
    from enginebench.store.folder import RunFolder

EXIT_CODES = {"done": 0, "failed": 3, "interrupted": 4}


def run(
    scenario: str = typer.Argument(None, help="A scenario file, or the name of a shipped one."),
    url: str = typer.Option(
        None, help="Measure this endpoint, e.g. http://127.0.0.1:8000/v1; no file needed."
    ),
    model: str = typer.Option(None, help="With --url: the model to ask for."),
    concurrency: str = typer.Option("1,8,64", help="With --url: levels, e.g. 1,8,64."),
    endpoint: str = typer.Option(None, help="With --url: chat or completions."),
    api_key_env: str = typer.Option(None, help="With --url: name of the variable that holds the API key."),
    input_tokens: int = typer.Option(None, help="With --url: prompt length."),
    output_tokens: int = typer.Option(None, help="With --url: output length asked for."),
    duration: str = typer.Option(None, help="With --url: measured time per level (default: 30s)."),
    requests: int = typer.Option(None, help="With --url: measure this many requests instead of a time."),
    warmup: str = typer.Option("5s", help="With --url: warm-up per level."),
    only: list[str] = typer.Option([], help="Run only this target (repeatable)."),
    set_: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Override a scenario value, e.g. load.0.duration=10s."
    ),
    out: Path = typer.Option(None, help="Folder for this run (default: reports/<utc-time>_<name>)."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print the resolved plan and leave."),
    resume: Path = typer.Option(None, help="Continue the broken-off run in this folder."),
    yes: bool = typer.Option(False, "--yes", help="Agree to load a public host."),
) -> None:
    """Run every target on the same work, store what happened, and report it.

    Exit codes: 0 done, 2 the input is wrong, 3 a target failed, 4 interrupted with a partial run saved.
    """
    from enginebench.catalog.scenario import UrlOptions, load_scenario, scenario_from_options, to_yaml

    if (scenario is None) == (url is None):
        raise UserError(
            "give a scenario file or --url, one of the two; `enginebench list scenarios` names some"
        )
    if url is not None:
        if duration is None and requests is None:
            duration = "30s"
        lengths = (input_tokens, output_tokens)
        options = UrlOptions(
            url, model, concurrency, endpoint, api_key_env, *lengths, duration, warmup, requests
        )
        resolved = scenario_from_options(options, set_)
        typer.echo(to_yaml(resolved), err=True)
    else:
        resolved = load_scenario(scenario, set_, only)
    execute(resolved, dry_run=dry_run, out=out, resume=resume, yes=yes)


def execute(scenario: Scenario, *, dry_run: bool, out: Path | None, resume: Path | None, yes: bool) -> None:
    """Runs a resolved scenario and leaves with the exit code of its end."""
    from rich.console import Console

    from enginebench.bench.cell import prepare_workers
    from enginebench.bench.experiment import first_meta, resumed_meta, run
    from enginebench.bench.screen import Screen
    from enginebench.catalog.plan import cells, plan_table, public_targets
    from enginebench.store.folder import RunFolder, create

    if dry_run:
        typer.echo(plan_table(scenario))
        return
    if (public := public_targets(scenario)) and not yes:
        typer.echo(plan_table(scenario), err=True)
        raise UserError(
            f"{', '.join(public)}: a public host; pass --yes (or set allow_public: true) if you may load it"
        )
    if resume is not None:
        folder = RunFolder(resume)
        meta = resumed_meta(folder, scenario)
    else:
        meta = first_meta(scenario, _command())
        folder = create(out, scenario.name)
    prepare_workers("enginebench.cli.main")
    n_done = sum(c["finished"] for c in meta["cells"])
    with Screen(Console(stderr=True, highlight=False), len(cells(scenario)), n_done) as screen:
        try:
            status = run(scenario, folder, screen, meta)
        except StorageError as error:
            error.exit_code = EXIT_CODES["interrupted"]  # a full disk, say: what was stored stays
            raise
    summary = _report(folder)
    if status == "done" and (barren := _without_success(summary)):
        typer.echo(f"enginebench: not one request succeeded at {', '.join(barren)}", err=True)
        status = "failed"
    raise typer.Exit(EXIT_CODES[status])


def _command() -> list[str]:
    """As typed, for the report's "how to reproduce". Keys are never given on the command line."""
    return ["enginebench", *sys.argv[1:]]


def _report(folder: RunFolder) -> Summary:
    from enginebench.cli.show import show
    from enginebench.store.derived import write_reports
    from enginebench.store.loading import load

    summary, path = write_reports(load(folder.path))
    show(summary, path)
    return summary


def _without_success(summary: Summary) -> list[str]:
    """Levels that sent requests and got no good answer: a run of those is not a result."""
    return [
        f"{target.name} {level.load} {level.level:g}"
        for target in summary.targets
        for level in target.levels
        if level.counts["total"] and not level.counts["ok"]
    ]
