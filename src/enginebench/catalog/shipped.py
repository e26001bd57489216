"""The data files that travel with enginebench: scenarios, launchers and tables."""

from __future__ import annotations

import difflib
import os.path
from pathlib import Path
from typing import Literal

import enginebench
from enginebench.errors import ConfigError

Kind = Literal["scenarios", "launchers"]

_SUFFIXES = (".yaml", ".yml", ".json")
_LISTED_BY = {"scenarios": "enginebench list scenarios", "launchers": "enginebench list engines"}


def folder(name: str) -> Path:
    """The folder `name` that came with this installation.

    A wheel carries it inside the package; in a checkout it stands at the top of the repository.
    """
    package = Path(enginebench.__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parents[1] / name


def names(kind: Kind) -> list[str]:
    """Names of the shipped files of one kind, sorted: `quickstart` for scenarios/quickstart.yaml."""
    return sorted(path.stem for path in folder(kind).glob("*.yaml"))


def find(kind: Kind, name_or_path: str | Path) -> Path:
    """The file that a person meant.

    A bare word names a shipped file first, so that a folder or a program called `vllm` in the
    current folder is not taken for the launcher; with a slash or a suffix it is a path, and only
    when nothing stands there it is looked up among the shipped files (`scenarios/quickstart.yaml`
    works from any folder). Raises ConfigError with the nearest names when there is no such file.
    """
    # os.path takes any text: Path raises for names too long and for unknown ~users.
    path = Path(os.path.expanduser(name_or_path))
    shipped = folder(kind) / f"{path.stem if path.suffix in _SUFFIXES else path.name}.yaml"
    is_shipped_name = path.parent in (Path(), Path(kind)) and os.path.isfile(shipped)
    is_bare_word = path.parent == Path() and path.suffix not in _SUFFIXES and "/" not in str(name_or_path)
    if is_bare_word and is_shipped_name:
        return shipped
    if os.path.isfile(path):
        return path
    if is_shipped_name:
        return shipped
    raise ConfigError(_not_found(kind, str(name_or_path), path))


def _not_found(kind: Kind, asked: str, path: Path) -> str:
    if os.path.isdir(path):
        return f"{asked} is a folder; name one {kind[:-1]} file in it"
    known = names(kind)
    near = difflib.get_close_matches(path.stem if path.suffix in _SUFFIXES else path.name, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"shipped are: {', '.join(known)}"
    return (
        f"no {kind[:-1]} {asked!r}: there is no such file, and none is shipped under that name; "
        f"{hint} (`{_LISTED_BY[kind]}` shows them all)"
    )
