"""A scenario's values before they are checked, and who is to blame for each of them.

Values come from a file, from `--set`, from other options and, by `${NAME}`, from the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from enginebench.catalog.validation import nearest
from enginebench.catalog.yaml_source import Loc, Source, parse_value, read_yaml
from enginebench.errors import ConfigError

SECRET_VARIABLE = re.compile(r"(key|token|secret|password|passwd|passphrase|credentials?)$", re.IGNORECASE)
"""Names of environment variables whose values must not be stored."""
_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")


@dataclass(slots=True)
class Settings:
    """Plain values under the scenario's own keys; `load` is always a list."""

    data: dict[str, Any]
    source: Source | None = None
    set_by: list[tuple[Loc, str]] = field(default_factory=list)
    """Values that came from the command line: where they are, and the option to blame."""
    load_was_mapping: bool = False

    def error(self, loc: Loc, message: str) -> ConfigError:
        """A ConfigError about the value at `loc` that says where the person wrote it."""
        for above, option in reversed(self.set_by):
            if loc[: len(above)] == above:
                return ConfigError(f"{option}: {message}")
        if self.source is None:
            return ConfigError(message)
        if self.load_was_mapping and loc[:2] == ("load", 0):
            loc = ("load", *loc[2:])
        return ConfigError(message, self.source.place(loc))


def settings_of_file(path: Path, overrides: Sequence[str]) -> Settings:
    """The file's values under the overrides (`load.0.duration=10s`), `${NAME}` replaced.

    Raises ConfigError for a file that cannot be read, a path that leads nowhere, a variable that
    is not set.
    """
    source = read_yaml(path)
    settings = Settings(source.data, source)
    if isinstance(source.data.get("load"), dict):
        source.data["load"] = [source.data["load"]]
        settings.load_was_mapping = True
    for override in overrides:
        _override(settings, override)
    settings.data = _with_environment(settings.data, (), settings)
    return settings


def settings_of_options(options: dict[Loc, tuple[str, Any]], overrides: Sequence[str]) -> Settings:
    """Values given by options: where each belongs, the option's name and its value."""
    settings = Settings({"targets": [{}], "workload": {}, "load": [{}]})
    for loc, (option, value) in options.items():
        _put(settings, loc, value, option)
    for override in overrides:
        _override(settings, override)
    settings.data = _with_environment(settings.data, (), settings)
    return settings


def _override(settings: Settings, text: str) -> None:
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts):
        # What was typed is not repeated: it may be a key in the wrong place.
        raise ConfigError("--set takes KEY=VALUE, such as --set load.0.duration=10s")
    option = f"--set {path.strip()}"
    _put(settings, tuple(parts), parse_value(value, option), option)


def _put(settings: Settings, loc: Loc, value: Any, option: str) -> None:
    """Set one value; mappings on the way are made, list items must be there."""
    at: Any = settings.data
    done: Loc = ()
    for part in loc[:-1]:
        step = _step(at, part, option)
        if isinstance(at, dict) and at.get(step) is None:
            at[step] = {}
            settings.set_by.append(((*done, step), option))
        done, at = (*done, step), at[step]
    step = _step(at, loc[-1], option)
    at[step] = value
    settings.set_by.append(((*done, step), option))


def _step(at: Any, part: str | int, option: str) -> str | int:
    """The key or position in `at` that `part` names; items of a list go by number or by name."""
    if isinstance(at, dict):
        return str(part)
    if not isinstance(at, list):
        raise ConfigError(f"{option}: {part!r} leads nowhere, because what stands above it has no keys")
    names = [str(item.get("name", "")) if isinstance(item, dict) else "" for item in at]
    if part in names:
        return names.index(str(part))
    if str(part).isdecimal() and int(part) < len(at):
        return int(part)
    known = [name for name in names if name] + [str(i) for i in range(len(at))]
    raise ConfigError(f"{option}: the list has no item {part!r}{nearest(str(part), known)}")


def _with_environment(value: Any, loc: Loc, settings: Settings) -> Any:
    if isinstance(value, dict):
        return {key: _with_environment(item, (*loc, key), settings) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_environment(item, (*loc, i), settings) for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replace(reference: re.Match[str]) -> str:
        name = reference[1]
        if name is None:
            return "${"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not reference[0].endswith("}"):
            raise settings.error(
                loc, f"{reference[0]!r} is not a variable; write ${{NAME}}, or $${{ for a plain ${{"
            )
        if SECRET_VARIABLE.search(name):
            raise settings.error(
                loc,
                f"${{{name}}} would store a secret with the run; write `api_key_env: {name}` in the target",
            )
        if name not in os.environ:
            raise settings.error(loc, f"the environment variable {name} is not set")
        return os.environ[name]

    return _REFERENCE.sub(replace, value)
