"""`enginebench run`: a scenario, or an endpoint given on the command line, to a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from enginebench.errors import StorageError, UserError

if TYPE_CHECKING:
    from enginebench.catalog.scenario import UrlOptions
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
    concurrency: str = typer.Option(None, help="With --url: levels (default: 1,8,64)."),
    endpoint: str = typer.Option(None, help="With --url: chat or completions."),
    api_key_env: str = typer.Option(None, help="With --url: name of the variable that holds the API key."),
    input_tokens: int = typer.Option(None, help="With --url: prompt length."),
    output_tokens: int = typer.Option(None, help="With --url: output length asked for."),
    duration: str = typer.Option(None, help="With --url: measured time per level (default: 30s)."),
    requests: int = typer.Option(None, help="With --url: measure this many requests instead of a time."),
    warmup: str = typer.Option(None, help="With --url: warm-up per level (default: 5s)."),
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
    from enginebench.catalog.scenario import load_scenario, scenario_from_options, to_yaml
    from enginebench.cli.show import note

    if (scenario is None) == (url is None):
        raise UserError(
            "give a scenario file or --url, one of the two; `enginebench list scenarios` names some"
        )
    if resume is not None and out is not None:
        raise UserError("--resume goes on in its own folder: leave out --out")
    given: dict[str, object] = {
        "model": model, "concurrency": concurrency, "endpoint": endpoint, "api_key_env": api_key_env,
        "input_tokens": input_tokens, "output_tokens": output_tokens, "duration": duration,
        "requests": requests, "warmup": warmup,
    }  # fmt: skip
    if url is None:
        if stray := [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]:
            raise UserError(
                f"{', '.join(stray)}: only with --url; change a scenario with --set, "
                "e.g. --set load.0.duration=10s"
            )
        resolved = load_scenario(scenario, set_, only)
    else:
        if only:
            raise UserError("--only goes with a scenario; --url is one target")
        resolved = scenario_from_options(_url_options(url, given), set_)
        note(to_yaml(resolved))
    execute(resolved, dry_run=dry_run, out=out, resume=resume, yes=yes)


def _url_options(url: str, given: dict[str, object]) -> UrlOptions:
    """The options given, and defaults for a first look: 30 s a level after 5 s of warm-up."""
    from enginebench.catalog.scenario import UrlOptions

    defaults: dict[str, object] = {"concurrency": "1,8,64", "warmup": "5s"}
    if given["requests"] is None:
        defaults["duration"] = "30s"
    chosen = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    return UrlOptions(url, **chosen)  # type: ignore[arg-type]


def execute(scenario: Scenario, *, dry_run: bool, out: Path | None, resume: Path | None, yes: bool) -> None:
    """Runs a resolved scenario and leaves with the exit code of its end."""
    from enginebench.bench.experiment import first_meta, prepare, resumed_meta, run
    from enginebench.bench.interrupts import Interrupts
    from enginebench.bench.screen import Screen
    from enginebench.catalog.plan import cells, plan_table, public_targets
    from enginebench.cli.show import SteadyConsole
    from enginebench.store.folder import RunFolder, create

    if dry_run:
        typer.echo(plan_table(scenario))
        return
    if (public := public_targets(scenario)) and not yes:
        typer.echo(plan_table(scenario), err=True)
        raise UserError(
            f"{', '.join(public)}: a public host; pass --yes (or set allow_public: true) if you may load it"
        )
    prepare(scenario, "enginebench.cli.main")
    if resume is not None:
        folder = RunFolder(resume)
        meta = resumed_meta(folder, scenario)
    else:
        meta = first_meta(scenario, _command())
        folder = create(out, scenario.name)
    n_done = sum(c["finished"] for c in meta["cells"])
    screen = Screen(SteadyConsole(stderr=True, highlight=False), len(cells(scenario)), n_done)
    with Interrupts(screen.say) as interrupts:
        try:
            with screen:
                status = run(scenario, folder, screen, meta, interrupts)
            status = _report(folder, status)
        except StorageError as error:
            error.exit_code = EXIT_CODES["interrupted"]  # a full disk, say: what was stored stays
            raise
    raise typer.Exit(EXIT_CODES[status])


def _command() -> list[str]:
    """As typed, for the report's "how to reproduce". Keys are never given on the command line."""
    return ["enginebench", *sys.argv[1:]]


def _report(folder: RunFolder, status: str) -> str:
    """Writes and shows the reports. A run without one success at some level is not done, whatever
    it went through; returns the status as it then is."""
    from enginebench.cli.show import note, show
    from enginebench.store.derived import write_reports
    from enginebench.store.loading import load

    barren = _without_success(load(folder.path).summary())
    if status == "done" and barren:
        status = "failed"
        folder.write_meta({**folder.read_meta(), "status": status})
    show(*write_reports(load(folder.path)))
    if barren:
        note(f"enginebench: not one request succeeded at {', '.join(barren)}")
    return status


def _without_success(summary: Summary) -> list[str]:
    """Levels that sent requests and got no good answer: a run of those is not a result."""
    return [
        f"{target.name} {level.load} {level.level:g}"
        for target in summary.targets
        for level in target.levels
        if level.counts["total"] and not level.counts["ok"]
    ]
