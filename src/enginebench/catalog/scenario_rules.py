"""What the types of a scenario do not catch: each rule yields the faults it finds, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from enginebench.catalog.dialects import load_dialect
from enginebench.catalog.invocation import known_options, missing_options
from enginebench.catalog.launchers import load_launcher
from enginebench.catalog.tokenizers import load_tokenizer
from enginebench.catalog.validation import nearest
from enginebench.catalog.yaml_source import Loc
from enginebench.errors import ConfigError, UserError
from enginebench.model.plan import WARMUP_SEQ
from enginebench.model.scenario import ConcurrencyLoad, Scenario, Target
from enginebench.units import NS_PER_S, format_duration

Fault = tuple[Loc, str]

_LONGEST_NS = 30 * 24 * 3600 * NS_PER_S
_MAX_LEVEL = 65_536
_MAX_REPEATS = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_GPU = re.compile(r"\d{1,3}|(GPU|MIG)-[\w/-]{4,80}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def faults(scenario: Scenario) -> Iterator[Fault]:
    """All of them; the locs are those of the YAML."""
    yield from _name_faults(("name",), scenario.name)
    if not scenario.targets:
        yield ("targets",), "there is no target: name at least one, with `launch` or `url`"
    for i, target in enumerate(scenario.targets):
        yield from _target_faults(("targets", i), target)
    yield from _repeated(
        ((("targets", i, "name"), t.name) for i, t in enumerate(scenario.targets)), "target name"
    )
    if not scenario.load:
        yield ("load",), "there is no load: give at least one, such as {levels: [1, 8, 64]}"
    for i, load in enumerate(scenario.load):
        yield from _load_faults(("load", i), load)
    levels = ((("load", i, "levels"), n) for i, load in enumerate(scenario.load) for n in load.levels)
    yield from _repeated(levels, "concurrency level")
    yield from _number_faults(scenario)
    yield from _tokenizer_faults(scenario.workload.tokenizer)
    yield from _timeout_faults(scenario)


def _name_faults(loc: Loc, name: str) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        yield (
            loc,
            f"name {name!r} is used in file names: letters, digits, - _ . only, a letter or digit first",
        )


def _repeated(values: Iterable[tuple[Loc, object]], what: str) -> Iterator[Fault]:
    seen: set[object] = set()
    for loc, value in values:
        if value in seen:
            yield loc, f"{what} {value} stands twice"
        seen.add(value)


def _target_faults(loc: Loc, target: Target) -> Iterator[Fault]:
    yield from _name_faults((*loc, "name"), target.name)
    if (target.launch is None) == (target.url is None):
        which = "neither" if target.url is None else "both"
        yield loc, f"a target needs either `launch` (we start it) or `url` (we attach); this has {which}"
    if not target.model:
        yield loc, "`model` is missing: the name that the engine serves, or the model to start it with"
    if target.api_key_env is not None and target.api_key_file is not None:
        yield (*loc, "api_key_file"), "give `api_key_env` or `api_key_file`, not both"
    if target.api_key_env is not None and not _VARIABLE.fullmatch(target.api_key_env):
        # The text is not repeated: it may be the key itself.
        yield (
            (*loc, "api_key_env"),
            "`api_key_env` is the name of an environment variable, not the key itself",
        )
    if target.dialect is not None:
        yield from _dialect_faults((*loc, "dialect"), target.dialect)
    yield from _launched_faults(loc, target) if target.launch is not None else _attached_faults(loc, target)


def _dialect_faults(loc: Loc, name: str) -> Iterator[Fault]:
    try:
        load_dialect(name)
    except ConfigError as error:
        yield loc, str(error)


def _launched_faults(loc: Loc, target: Target) -> Iterator[Fault]:
    try:
        launcher = load_launcher(str(target.launch))
    except ConfigError as error:
        # A fault inside the launcher's own file comes with its own place.
        yield (*loc, "launch"), str(error)
        return
    yield from _too_long((*loc, "start_timeout"), target.start_timeout_ns)
    if target.via not in launcher.forms:
        yield (
            (*loc, "via"),
            f"{launcher.id} has no form {target.via!r}{nearest(target.via, [*launcher.forms])}",
        )
        return
    known = known_options(launcher.forms[target.via])
    for option in target.options:
        if option not in known:
            hint = nearest(option, sorted(known))
            yield (*loc, "options", option), f"{launcher.id} via {target.via} has no option {option!r}{hint}"
    for option in missing_options(launcher.forms[target.via], target.options):
        yield (
            (*loc, "options"),
            f'{launcher.id} needs the words that start it: {option}: [my-server, --port, "{{port}}"]',
        )
    yield from _gpu_faults((*loc, "gpus"), target.gpus or ())
    health = target.readiness.health if target.readiness else None
    if health is not None and not health.startswith("/"):
        yield (*loc, "readiness", "health"), f"a health path begins with a slash: /{health}"


def _gpu_faults(loc: Loc, gpus: tuple[int | str, ...]) -> Iterator[Fault]:
    for gpu in gpus:
        if not _GPU.fullmatch(str(gpu)):
            yield loc, f"a GPU is named by its index or its UUID, as `nvidia-smi -L` shows them, not {gpu!r}"
    yield from _repeated(((loc, str(gpu)) for gpu in gpus), "GPU")


def _attached_faults(loc: Loc, target: Target) -> Iterator[Fault]:
    values = {
        "options": target.options,
        "env": target.env,
        "start_timeout": target.start_timeout_ns,
        "gpus": target.gpus,
        "readiness": target.readiness,
    }
    for key, value in values.items():
        if value:
            yield (*loc, key), f"`{key}` is for engines that enginebench starts; a target with `url` has none"
    if target.via != "process":
        yield (*loc, "via"), "`via` is for engines that enginebench starts; a target with `url` has none"


def _load_faults(loc: Loc, load: ConcurrencyLoad) -> Iterator[Fault]:
    if not load.levels:
        yield (*loc, "levels"), "`levels` is empty: give at least one, such as [1, 8, 64]"
    for level in load.levels:
        if not 1 <= level <= _MAX_LEVEL:
            yield (*loc, "levels"), f"a concurrency level is from 1 to {_MAX_LEVEL}, not {level}"
    if load.duration_ns is not None and load.requests is not None:
        yield (*loc, "requests"), "give `duration` or `requests`, not both (null unsets one)"
    if load.duration_ns == 0:
        yield (*loc, "duration"), "`duration` must be longer than 0"
    yield from _too_long((*loc, "duration"), load.duration_ns)
    yield from _too_long((*loc, "warmup"), load.warmup_ns)
    if load.requests is not None and not 1 <= load.requests < WARMUP_SEQ:
        yield (*loc, "requests"), f"`requests` must be from 1 to {WARMUP_SEQ - 1}, not {load.requests}"


def _too_long(loc: Loc, duration_ns: int | None) -> Iterator[Fault]:
    if duration_ns is not None and duration_ns > _LONGEST_NS:
        yield loc, f"`{loc[-1]}` is longer than 30 days"


def _number_faults(scenario: Scenario) -> Iterator[Fault]:
    if not 1 <= scenario.repeats <= _MAX_REPEATS:
        yield ("repeats",), f"`repeats` must be from 1 to {_MAX_REPEATS}, not {scenario.repeats}"
    if not 0 <= scenario.seed < 2**63:
        yield ("seed",), f"`seed` must be from 0 to 2^63 - 1, not {scenario.seed}"
    if scenario.workers != "auto" and scenario.workers < 1:
        yield ("workers",), f"`workers` must be auto or 1, not {scenario.workers}"
    temperature = scenario.workload.sampling.temperature
    if temperature is not None and not 0 <= temperature <= 2:
        yield (
            ("workload", "sampling", "temperature"),
            f"`temperature` must be from 0 to 2, not {temperature:g}",
        )


def _tokenizer_faults(path: str | None) -> Iterator[Fault]:
    try:
        if path is not None:
            load_tokenizer(path)
    except UserError as error:
        yield ("workload", "tokenizer"), str(error)


def _timeout_faults(scenario: Scenario) -> Iterator[Fault]:
    timeouts = scenario.timeouts
    named = {"first_token": timeouts.first_token_ns, "idle": timeouts.idle_ns, "total": timeouts.total_ns}
    for name, value in named.items():
        if value == 0:
            yield ("timeouts", name), f"`{name}` must be longer than 0"
        yield from _too_long(("timeouts", name), value)
        if value > timeouts.total_ns:
            total = format_duration(timeouts.total_ns)
            yield ("timeouts", name), f"`{name}` ({format_duration(value)}) is longer than `total` ({total})"
