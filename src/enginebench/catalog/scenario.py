"""Scenario files, and scenarios made from command-line options, to a checked `Scenario` and back.

Every fault is one ConfigError that names the file, line and column, or the option, it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from enginebench.catalog import shipped
from enginebench.catalog.launchers import load_launcher
from enginebench.catalog.scenario_faults import in_words, refuse_stray_values
from enginebench.catalog.scenario_keys import check_keys
from enginebench.catalog.scenario_rules import faults
from enginebench.catalog.scenario_settings import Settings, settings_of_file, settings_of_options
from enginebench.catalog.token_counts import plain_token_count, read_token_count
from enginebench.catalog.urls import base_url
from enginebench.catalog.validation import nearest
from enginebench.catalog.yaml_source import Loc, parse_value, write_yaml
from enginebench.errors import ConfigError
from enginebench.model.scenario import ConcurrencyLoad, Scenario, Target
from enginebench.units import NS_PER_S

DEFAULT_DURATION_NS = 60 * NS_PER_S
"""Of a load that says neither `duration` nor `requests`."""

_LAUNCH_KEYS = frozenset({"dialect", "endpoint", "env", "readiness", "start_timeout"})
"""Keys of a target, beside the engine's options, that `launch --set` takes."""
_LENGTHS = ("input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class UrlOptions:
    """`enginebench run --url`: what a scenario file would say, each None where the option is absent."""

    url: str
    model: str | None
    concurrency: str = "1,8,64"
    endpoint: str | None = None
    api_key_env: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration: str | None = None
    warmup: str | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """`enginebench launch`: what a target would say, each None where the option is absent."""

    engine: str
    """A launcher's id, or the path of its file."""
    model: str | None = None
    via: str | None = None
    gpus: str | None = None
    """`0,1`, or UUIDs; `none`."""
    host: str | None = None
    port: int | None = None
    api_key_env: str | None = None
    settings: Sequence[str] = ()
    """NAME=VALUE: options of the engine, or other keys of a target such as env.OMP_NUM_THREADS."""


def load_scenario(
    name_or_path: str | Path, overrides: Sequence[str] = (), only: Sequence[str] = ()
) -> Scenario:
    """The scenario in a file, or the shipped one of that name.

    `overrides` are `--set` texts such as `load.0.duration=10s`; list items go by number, targets
    also by name. `only` keeps the targets of these names. Raises ConfigError.
    """
    path = shipped.find("scenarios", name_or_path)
    settings = settings_of_file(path, overrides)
    settings.data.setdefault("name", path.stem)
    scenario = _checked(settings)
    names = [target.name for target in scenario.targets]
    for name in only:
        if name not in names:
            raise ConfigError(f"--only {name}: the scenario has no such target{nearest(name, names)}")
    kept = tuple(target for target in scenario.targets if not only or target.name in only)
    return replace(scenario, targets=kept)


def scenario_from_options(options: UrlOptions, overrides: Sequence[str] = ()) -> Scenario:
    """A scenario with one target, the endpoint at `options.url`. Raises ConfigError."""
    if not options.model:
        raise ConfigError("--url needs --model: the name under which the endpoint serves its model")
    levels = [part.strip() for part in options.concurrency.split(",")]
    given: dict[Loc, tuple[str, Any]] = {
        ("name",): ("--url", "url"),
        ("targets", 0, "name"): ("--url", "endpoint"),
        ("targets", 0, "url"): ("--url", options.url),
        ("targets", 0, "model"): ("--model", options.model),
        ("targets", 0, "endpoint"): ("--endpoint", options.endpoint),
        ("targets", 0, "api_key_env"): ("--api-key-env", options.api_key_env),
        ("workload", "input_tokens"): ("--input-tokens", options.input_tokens),
        ("workload", "output_tokens"): ("--output-tokens", options.output_tokens),
        ("load", 0, "levels"): ("--concurrency", levels),
        ("load", 0, "warmup"): ("--warmup", options.warmup),
        ("load", 0, "duration"): ("--duration", options.duration),
        ("load", 0, "requests"): ("--requests", options.requests),
    }
    present = {loc: (option, value) for loc, (option, value) in given.items() if value is not None}
    return _checked(settings_of_options(present, overrides))


def launch_scenario(options: LaunchOptions) -> Scenario:
    """A scenario whose one target is the engine to start; its load is never run. Raises ConfigError."""
    given: dict[Loc, tuple[str, Any]] = {
        ("name",): ("ENGINE", "launch"),
        ("targets", 0, "name"): ("ENGINE", load_launcher(options.engine).id),
        ("targets", 0, "launch"): ("ENGINE", options.engine),
        ("targets", 0, "model"): ("--model", options.model),
        ("targets", 0, "via"): ("--via", options.via),
        ("targets", 0, "gpus"): ("--gpus", None if options.gpus is None else _gpus(options.gpus)),
        ("targets", 0, "api_key_env"): ("--api-key-env", options.api_key_env),
        ("targets", 0, "options", "host"): ("--host", options.host),
        ("targets", 0, "options", "port"): ("--port", options.port),
        ("load", 0, "levels"): ("ENGINE", [1]),
    }
    for setting in options.settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ConfigError("--set takes NAME=VALUE, such as --set max_num_seqs=64")
        parts = name.split(".")
        of_target = parts[0] in _LAUNCH_KEYS
        loc: Loc = ("targets", 0, *parts) if of_target else ("targets", 0, "options", name)
        given[loc] = (f"--set {name}", parse_value(value, f"--set {name}"))
    return _checked(
        settings_of_options({loc: (by, v) for loc, (by, v) in given.items() if v is not None}, ())
    )


def _gpus(text: str) -> list[int | str]:
    names = [] if text == "none" else text.split(",")
    return [int(name) if name.strip().isdecimal() else name.strip() for name in names]


def plain_scenario(scenario: Scenario) -> dict[str, Any]:
    """All of it, as JSON can hold it and a scenario file would say it. It has no secrets: none ever
    got in."""
    plain: dict[str, Any] = _adapter().dump_python(scenario, mode="json", by_alias=True)
    for key in _LENGTHS:
        plain["workload"][key] = plain_token_count(getattr(scenario.workload, key))
    return plain


def to_yaml(scenario: Scenario) -> str:
    """A scenario file that reads back as `scenario`. Defaults are left out, but not what decides a
    result: lengths, warm-up, duration, repeats, seed."""
    full = plain_scenario(scenario)
    short: dict[str, Any] = _adapter().dump_python(
        scenario, mode="json", by_alias=True, exclude_defaults=True
    )
    ordered = {"name": full["name"], "targets": [_without_none(target) for target in short["targets"]]}
    ordered["workload"] = {**short.get("workload", {}), **{key: full["workload"][key] for key in _LENGTHS}}
    ordered["load"] = [{"kind": load["kind"], **_without_none(load)} for load in full["load"]]
    rest = {key: value for key, value in short.items() if key not in ordered}
    ordered |= {"repeats": full["repeats"], "seed": full["seed"], **rest}
    return write_yaml(_escaped(ordered))


def _checked(settings: Settings) -> Scenario:
    check_keys(settings)
    refuse_stray_values(settings)
    _read_lengths(settings)
    try:
        scenario = _adapter().validate_python(settings.data)
    except ValidationError as error:
        raise in_words(error, settings) from error
    for loc, message in faults(scenario):
        raise settings.error(loc, message)
    targets = tuple(_with_base_url(target, i, settings) for i, target in enumerate(scenario.targets))
    return replace(scenario, targets=targets, load=tuple(map(_with_duration, scenario.load)))


def _read_lengths(settings: Settings) -> None:
    workload = settings.data.get("workload")
    for key in _LENGTHS:
        if isinstance(workload, dict) and key in workload:
            try:
                workload[key] = read_token_count(workload[key])
            except ValueError as error:
                raise settings.error(("workload", key), f"`{key}`: {error}") from error


def _with_base_url(target: Target, i: int, settings: Settings) -> Target:
    if target.url is None:
        return target
    try:
        return replace(target, url=base_url(target.url, target.endpoint))
    except ValueError as error:
        raise settings.error(("targets", i, "url"), f"`url` cannot be used: {error}") from error


def _with_duration(load: ConcurrencyLoad) -> ConcurrencyLoad:
    is_open = load.duration_ns is None and load.requests is None
    return replace(load, duration_ns=DEFAULT_DURATION_NS) if is_open else load


@cache
def _adapter() -> TypeAdapter[Scenario]:
    return TypeAdapter(Scenario)


def _without_none(section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value is not None}


def _escaped(value: Any) -> Any:
    """A `${` that is meant as it stands is written `$${`."""
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value
