"""From a launcher and what a target asks for to the words that start the engine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import enginebench
from enginebench.catalog import containers, shipped
from enginebench.catalog.placeholders import BUILT_IN, fill, named
from enginebench.catalog.validation import nearest
from enginebench.errors import UserError
from enginebench.model.launcher import Form, Launcher
from enginebench.model.scenario import Target

_ENGINES_VARIABLE = "ENGINEBENCH_ENGINES"
_SETTABLE = ("model", "host", "port", "served_name")
"""Built-in values that a target may set among its options."""
WHOLE_COMMAND = "{command}"
"""A word of a form's command that stands for all words of the option `command`."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a target says beside its options."""

    gpus: Sequence[int | str] | None = None
    """None: as the engine likes; empty: none."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    has_key: bool = False
    """Whether requests carry an API key, which the engine is then told."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """`{port}` stays in the words unless the port is set: whoever starts the engine chooses one.
    What is not to be shown, or another machine has elsewhere, always stays: see `completed`."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """To be added to our own environment."""
    version_argv: tuple[str, ...]
    served_name: str
    host: str
    port: int
    """0 where it is not set."""
    container: str | None = None
    """Name of the container that argv runs, with `{port}`; None for a plain process."""


def surroundings(target: Target) -> Surroundings:
    has_key = target.api_key_env is not None or target.api_key_file is not None
    return Surroundings(target.gpus, target.env, has_key)


def completed(made: Invocation, key: str | None) -> Invocation:
    """The invocation with the API key itself in it, and the folders that a container mounts: for a
    start on this machine, never to be shown."""
    values = {**containers.host_folders(), **({"api_key": key} if key is not None else {})}
    argv = tuple(fill(word, values) for word in made.argv)
    return replace(made, argv=argv, env={name: fill(text, values) for name, text in made.env.items()})


def command(launcher: Launcher, form_name: str, values: Mapping[str, Any]) -> list[str]:
    """argv of the engine. `values` holds model, optionally host, port and served_name, and the
    target's options by their neutral names. Raises UserError for an option the launcher does not
    know, and where something the command needs is not installed."""
    return list(invocation(launcher, form_name, values).argv)


def invocation(
    launcher: Launcher, form_name: str, values: Mapping[str, Any], around: Surroundings | None = None
) -> Invocation:
    """As `command`, with everything else that a start needs."""
    around = around or Surroundings()
    form = _form(launcher, form_name)
    options = _options(launcher, form_name, form, values)
    host, port = str(options["host"]), _port(options)
    # 0 means a free port, as when nothing is said: the placeholder stays for whoever finds one.
    options = {name: value for name, value in options.items() if name != "port" or port}
    inside = options if form.image is None else containers.inside(form.image, options)
    filling = _Filling(launcher.id, inside, {"port", "api_key"} if around.has_key else {"port"})
    words = _command_words(launcher.id, form, inside, filling)
    env = {name: filled for name, text in form.env.items() if (filled := filling.word(text)) is not None}
    env |= around.env
    container = None
    if form.image is None:
        env = {**_pinned(around.gpus), **env}
    else:
        container = f"enginebench-{launcher.id}-{port or '{port}'}"
        address = f"[{host}]" if ":" in host else host
        outside = containers.Outside(container, f"{address}:{port or '{port}'}", str(options["model"]))
        words, env = containers.docker_run(form.image, outside, options, (words, env, around.gpus))
    version = [filled for word in form.version if (filled := filling.word(word)) is not None]
    return Invocation(tuple(words), env, tuple(version), str(options["served_name"]), host, port, container)


def named_options(form: Form) -> set[str]:
    """The options that words of the command or of the environment name."""
    words = [*form.command, *form.env.values()]
    return {name for word in words for name in named(word)} - set(BUILT_IN)


def known_options(form: Form) -> set[str]:
    """Names that a target may set, `model` among them."""
    known = {*form.options, *form.off_options, *form.defaults, *named_options(form), *_SETTABLE}
    return {*known, "extra_args"} | ({"image"} if form.image is not None else set())


def missing_options(form: Form, options: Mapping[str, Any]) -> list[str]:
    """Options that the form cannot do without and `options` does not set."""
    return ["command"] if WHOLE_COMMAND in form.command and not options.get("command") else []


def engines_folder() -> Path:
    """Where scripts/install-engines puts environments and test models: $ENGINEBENCH_ENGINES, else
    `.venvs` of the checkout, else the user's cache."""
    if chosen := os.environ.get(_ENGINES_VARIABLE):
        return Path(chosen).expanduser().absolute()
    package = Path(enginebench.__file__).parent
    launchers = shipped.folder("launchers")
    if not launchers.is_relative_to(package):
        return launchers.parent / ".venvs"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "enginebench"


def served_name(model: str, options: Mapping[str, Any]) -> str:
    """The name under which requests ask for the model: the option `served_name`, else the model's
    id, and for a file or folder its own name without `.gguf`."""
    if options.get("served_name") is not None:
        return str(options["served_name"])
    return Path(model).name.removesuffix(".gguf") if containers.is_path(model) else model


def _form(launcher: Launcher, form_name: str) -> Form:
    if form_name not in launcher.forms:
        raise UserError(
            f"{launcher.id} cannot be run via {form_name!r}{nearest(form_name, [*launcher.forms])}"
        )
    return launcher.forms[form_name]


def _options(launcher: Launcher, form_name: str, form: Form, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are set, defaults included. A value of null unsets a default."""
    known = known_options(form)
    for name in values:
        if name not in known:
            settable = sorted(known - {"model", "host"})
            raise UserError(
                f"{launcher.id} via {form_name} has no option {name!r}{nearest(name, settable)}; "
                "its own flags go through `extra_args: [--flag, value]`"
            )
    extra = values.get("extra_args")
    if extra is not None and (isinstance(extra, str) or not isinstance(extra, Sequence)):
        raise UserError(
            f"extra_args of {launcher.id} is a list of words, e.g. [--flag, value]; got {extra!r}"
        )
    options = {"host": "127.0.0.1", **form.defaults, **values}
    options = {name: value for name, value in options.items() if value is not None}
    if "model" not in options:
        raise UserError(f"{launcher.id} needs a model: add `model:` to the target")
    model = str(options["model"])
    options["model"] = _model_path(model)
    options["served_name"] = fill(served_name(model, options), {"model": options["model"]})
    return options


def _command_words(launcher_id: str, form: Form, options: Mapping[str, Any], filling: _Filling) -> list[str]:
    """The words for the engine itself: its command, its options, and what the user adds."""
    own = _own_command(launcher_id, form, options)
    argv = [filled for word in own if (filled := filling.word(word)) is not None]
    for option, words in form.options.items():
        if option in options:
            argv += filling.option(option, words)
    for option, words in form.off_options.items():
        if option in options:
            argv += filling.off_option(option, words)
    return argv + [str(word) for word in options.get("extra_args", ())]


def _own_command(launcher_id: str, form: Form, options: Mapping[str, Any]) -> list[str]:
    if WHOLE_COMMAND not in form.command:
        return list(form.command)
    given = options.get("command")
    example = 'e.g. command: [my-server, --port, "{port}"]'
    if not given or isinstance(given, str) or not isinstance(given, Sequence):
        raise UserError(f"{launcher_id} needs the option command, a list of words; {example}")
    own = [str(word) for word in given]
    if not options.get("port") and not any("port" in named(word) for word in own):
        raise UserError(f"the command must name {{port}}, or the option port be set; {example}")
    return [own_word for word in form.command for own_word in (own if word == WHOLE_COMMAND else [word])]


def _pinned(gpus: Sequence[int | str] | None) -> dict[str, str]:
    """Indexes then count as nvidia-smi's do; CUDA's own order puts the fastest GPU first."""
    if gpus is None:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}


def _port(options: Mapping[str, Any]) -> int:
    port = options.get("port", 0)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise UserError(f"option port is a number below 65536, not {port!r}")
    return port


def _model_path(model: str) -> str:
    """`{engines}/models/x.gguf` is a model that scripts/install-engines makes; `~` is expanded."""
    if model.startswith("~"):
        return str(Path(model).expanduser())
    path = fill(model, {"engines": engines_folder()})
    if path != model and not Path(path).exists():
        raise UserError(f"no test model at {path}; {_INSTALL_HINT.format('llamacpp')}")
    return path


_INSTALL_HINT = (
    "run `scripts/install-engines {}` in a checkout of enginebench, or set "
    f"{_ENGINES_VARIABLE} to the folder where that was done"
)


class _Filling:
    """Replaces placeholders by what is set, and looks for an environment only when one is named."""

    def __init__(self, launcher_id: str, options: Mapping[str, Any], left_open: set[str]) -> None:
        self._launcher_id, self._open = launcher_id, left_open
        self._values = {name: _text(value) for name, value in options.items()}
        self._values["python"] = sys.executable
        self._values["package"] = str(Path(enginebench.__file__).parent)
        self._values["engines"] = str(engines_folder())

    def word(self, word: str, own: Mapping[str, str] | None = None) -> str | None:
        """None when the word names something that is neither set nor left open."""
        values = {**self._values, **(own or {})}
        names = named(word)
        if {"engine_python", "engine_bin"} & {*names}:
            python = _engine_python(self._launcher_id)
            values |= {"engine_python": str(python), "engine_bin": str(python.parent)}
        return fill(word, values) if all(name in values or name in self._open for name in names) else None

    def option(self, name: str, words: Sequence[str]) -> list[str]:
        """The words of one option that is set. Words that do not hold its value are a switch, and
        stand only for `true`."""
        value = self._values[name]
        is_switch = not any({"value", "no-", name} & set(named(word)) for word in words)
        if is_switch and not self._is_on(name):
            return []
        own = {"value": value, "no-": "no-" if value == "false" else ""}
        try:
            return [self._needed(name, word, self.word(word, own)) for word in words]
        except ValueError as error:
            raise UserError(f"option {name} of {self._launcher_id} needs a number: {error}") from error

    def off_option(self, name: str, words: Sequence[str]) -> list[str]:
        """The words that turn a switch off; none while it is on, as it is by itself."""
        return [] if self._is_on(name) else [self._needed(name, word, self.word(word)) for word in words]

    def _is_on(self, name: str) -> bool:
        value = self._values[name]
        if value not in ("true", "false"):
            raise UserError(f"option {name} of {self._launcher_id} is a switch: true or false, not {value!r}")
        return value == "true"

    def _needed(self, option: str, word: str, filled: str | None) -> str:
        if filled is None:
            others = ", ".join(name for name in named(word) if name not in self._values)
            raise UserError(f"option {option} of {self._launcher_id} needs {others} to be set too")
        return filled


def _engine_python(launcher_id: str) -> Path:
    python = engines_folder() / launcher_id / "bin" / "python"
    if not python.exists():
        raise UserError(f"no environment for {launcher_id} at {python}; {_INSTALL_HINT.format(launcher_id)}")
    return python


def _text(value: object) -> str:
    """As a command line takes it: true, 3, text as it is, JSON for lists and mappings."""
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return str(value)
