"""Launcher files: how an engine is started, read and checked. `invocation` makes commands of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pydantic import TypeAdapter

from enginebench.catalog import shipped
from enginebench.catalog.dialects import load_dialect
from enginebench.catalog.invocation import WHOLE_COMMAND, named_options
from enginebench.catalog.placeholders import BUILT_IN, HOST_FOLDERS, named
from enginebench.catalog.validation import nearest, validated
from enginebench.catalog.yaml_source import Loc, Source, read_yaml
from enginebench.errors import ConfigError
from enginebench.model.launcher import Form, Launcher

_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


def load_launcher(name_or_path: str) -> Launcher:
    """A shipped launcher by its id, or the launcher in a file. Raises ConfigError, with its place,
    for anything in it that cannot be used."""
    source = read_yaml(shipped.find("launchers", name_or_path))
    _insert_dialect(source)
    launcher = validated(_adapter(), source)
    for loc, problem in _problems(launcher):
        raise ConfigError(problem, source.place(loc))
    return launcher


def launchers() -> list[Launcher]:
    """All shipped launchers, by id."""
    return [load_launcher(name) for name in shipped.names("launchers")]


@cache
def _adapter() -> TypeAdapter[Launcher]:
    return TypeAdapter(Launcher)


def _insert_dialect(source: Source) -> None:
    """A dialect may be named instead of spelled out; the shipped ones are shared with targets that
    attach to a URL."""
    dialect = source.data.get("dialect")
    if isinstance(dialect, str):
        try:
            source.data["dialect"] = load_dialect(dialect)
        except ConfigError as error:
            raise ConfigError(str(error), source.place(("dialect",))) from error


def _problems(launcher: Launcher) -> Iterator[tuple[Loc, str]]:
    """What the types alone do not catch, and where."""
    if not _ID.fullmatch(launcher.id):
        yield ("id",), f"{launcher.id!r} is not an id; use small letters, digits and hyphens"
    if not launcher.forms:
        yield ("forms",), "no form: name at least one way to run the engine, e.g. `process`"
    health = launcher.readiness.health
    if health is not None and not health.startswith("/"):
        yield ("readiness", "health"), f"a health path begins with a slash: /{health}"
    if launcher.base_path and not launcher.base_path.startswith("/"):
        yield ("base_path",), f"a base path begins with a slash: /{launcher.base_path}"
    if launcher.cache_reset is not None and not launcher.cache_reset.startswith("/"):
        yield ("cache_reset",), f"a path begins with a slash: /{launcher.cache_reset}"
    for name, form in launcher.forms.items():
        yield from _form_problems(("forms", name), form)


def _form_problems(loc: Loc, form: Form) -> Iterator[tuple[Loc, str]]:
    if not form.command:
        yield (*loc, "command"), "the command is empty"
    for option in form.defaults:
        known = {*form.options, *form.off_options, *named_options(form), "served_name"}
        if option not in known:
            hint = nearest(option, sorted(known))
            yield (*loc, "defaults", option), f"a default for an unknown option {option!r}{hint}"
    for option in {*form.options} & {*form.off_options}:
        yield (*loc, "off_options", option), f"option {option!r} stands under `options` too"
    yield from _port_problems(loc, form)
    # An option that stands in the command alone is declared by its default, which may be null.
    allowed = {*BUILT_IN, *form.options, *form.defaults}
    for where, word, more in _words(form):
        for name in named(word):
            if name not in allowed | more:
                hint = nearest(name, sorted(allowed | more))
                yield (*loc, *where), f"unknown placeholder {{{name}}}{hint}"


def _port_problems(loc: Loc, form: Form) -> Iterator[tuple[Loc, str]]:
    """Without a port we could not tell it where to listen. In a container it may be fixed."""
    words = [*form.command, *form.env.values()]
    if form.image is not None or WHOLE_COMMAND in form.command:
        return
    if not any("port" in named(word) for word in words):
        yield (*loc, "command"), "no word names {port}: the engine must be told where to listen"


def _words(form: Form) -> Iterator[tuple[Loc, str, set[str]]]:
    """Every word that may hold placeholders: its place, itself, and what it may name in addition."""
    for i, word in enumerate(form.command):
        yield ("command", i), word, {"command"} if word == WHOLE_COMMAND else set()
    for i, word in enumerate(form.version):
        yield ("version", i), word, set()
    for name, text in form.env.items():
        yield ("env", name), text, set()
    for option, words in form.options.items():
        for i, word in enumerate(words):
            yield ("options", option, i), word, {"value", "no-"}
    for option, words in form.off_options.items():
        for i, word in enumerate(words):
            yield ("off_options", option, i), word, set()
    for folder in form.image.mounts if form.image is not None else ():
        yield ("image", "mounts", folder), folder, {*HOST_FOLDERS}
