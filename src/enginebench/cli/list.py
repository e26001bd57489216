"""`enginebench list`: what comes with this installation."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer


class Shelf(StrEnum):
    ENGINES = "engines"
    SCENARIOS = "scenarios"


def list_shipped(
    what: Shelf = typer.Argument(help="engines: those that `launch:` knows; scenarios."),
) -> None:
    """List the engines or the scenarios that come with enginebench."""
    rows = _engines() if what is Shelf.ENGINES else _scenarios()
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        typer.echo(f"{name:{width}}  {text}")


def _engines() -> list[tuple[str, str]]:
    from enginebench.catalog.launchers import launchers

    return [(launcher.id, f"{launcher.title} (via {', '.join(launcher.forms)})") for launcher in launchers()]


def _scenarios() -> list[tuple[str, str]]:
    from enginebench.catalog.shipped import find, names

    return [(name, _question(find("scenarios", name))) for name in names("scenarios")]


def _question(path: Path) -> str:
    """A scenario file opens with the question that it answers, as a comment of a line or two."""
    words: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#") or line.strip() == "#":
            break
        words.append(line.removeprefix("#").strip())
        if line.rstrip().endswith("?"):
            break
    return " ".join(words)
