"""`enginebench launch`: start one engine, or say how it would be started."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from enginebench.errors import TargetError, UserError

if TYPE_CHECKING:
    from enginebench.model.scenario import Scenario


def launch(
    engine: str = typer.Argument(
        None, help="An engine's id (`enginebench list engines`), or the path of a launcher file."
    ),
    model: str = typer.Option(None, help="The model to serve: an id, a folder or a file."),
    via: str = typer.Option(None, help="Form of the launcher: process (default), container, ..."),
    gpus: str = typer.Option(None, help="GPUs it may use: indexes or UUIDs, e.g. 0,1; or none."),
    set_: list[str] = typer.Option(
        [],
        "--set",
        metavar="OPTION=VALUE",
        help="An option of the engine, e.g. max_num_seqs=64 (repeatable).",
    ),
    host: str = typer.Option(None, help="Address to listen on (default: 127.0.0.1)."),
    port: int = typer.Option(8000, help="Port to listen on; 0 takes any free one."),
    api_key_env: str = typer.Option(None, help="Name of the variable that holds the key it shall ask for."),
    log: Path = typer.Option(None, help="Keep the engine's output in this file."),
    print_: bool = typer.Option(False, "--print", help="Print the exact command and leave."),
    script: bool = typer.Option(
        False, "--script", help="Print a script that starts and stops it, and leave."
    ),
    clean: bool = typer.Option(
        False, "--clean", help="End engines whose enginebench is gone, and leave. Takes no engine."
    ),
) -> None:
    """Start one engine, show its log, and stop it with Ctrl-C.

    The base URL is printed once the engine has completed a request.
    Exit codes: 0 stopped by you, 2 the input is wrong, 3 it could not be started or ended by itself.
    """
    from enginebench.catalog.scenario import LaunchOptions, launch_scenario

    if clean:
        _clean()
        return
    if engine is None:
        raise UserError("name an engine: `enginebench list engines` shows them all")
    if print_ and script:
        raise UserError("--print or --script, one of the two")
    scenario = launch_scenario(LaunchOptions(engine, model, via, gpus, host, port, api_key_env, set_))
    if print_ or script:
        typer.echo(_text(scenario, script=script), nl=print_)
    elif log is not None:
        _run(scenario, log)
    else:
        _run_with_passing_log(scenario)


def _clean() -> None:
    from enginebench.engines import orphans

    found = orphans.find()
    typer.echo(f"ending {found} ..." if found else "no engine of an earlier run is left", err=True)
    if left := orphans.end(found):
        raise TargetError(f"still there: {'; '.join(left)}; end it by hand: {found.ending()}")


def _run_with_passing_log(scenario: Scenario) -> None:
    """The log goes with the engine, unless that failed: the error then names the file."""
    from enginebench.bench.sweeping import swept

    folder = Path(tempfile.mkdtemp(prefix="enginebench-"))
    log_path, failed = folder / "engine.txt", False
    try:
        with swept(folder):
            _run(scenario, log_path)
    except TargetError:
        failed = True
        raise
    finally:
        if not failed or not log_path.exists() or not log_path.stat().st_size:
            shutil.rmtree(folder)


def _text(scenario: Scenario, *, script: bool) -> str:
    from enginebench.catalog.launch_script import launch_script, shell_command, written_down

    (target,) = scenario.targets
    launch = written_down(target, shlex.join(["enginebench", *sys.argv[1:]]), open_port=script)
    return launch_script(launch) if script else shell_command(launch)


def _run(scenario: Scenario, log_path: Path) -> None:
    from enginebench.bench.launching import keep_running
    from enginebench.bench.targets import OpenTarget
    from enginebench.catalog.launchers import load_launcher

    (target,) = scenario.targets
    launcher = load_launcher(str(target.launch))
    if not log_path.parent.is_dir():
        raise UserError(f"--log: there is no folder {log_path.parent}")
    typer.echo(f"starting {launcher.title} ...", err=True)

    def ready(engine: OpenTarget) -> None:
        base_url = engine.facts["base_url"]
        typer.echo(f"ready after {engine.facts['ready_s']:.1f} s: {base_url}", err=True)
        if launcher.cache_reset:
            root = base_url.removesuffix(launcher.base_path)
            typer.echo(f"empty its prefix cache: curl -X POST {root}{launcher.cache_reset}", err=True)
        typer.echo("Ctrl-C stops it", err=True)

    keep_running(scenario, log_path, ready)
    typer.echo("stopped", err=True)
