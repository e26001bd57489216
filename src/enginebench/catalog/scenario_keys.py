"""Which keys a scenario may have; those that a later version will have; and secrets, never."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from enginebench.catalog.scenario_settings import SECRET_VARIABLE, Settings
from enginebench.catalog.validation import nearest
from enginebench.catalog.yaml_source import Loc
from enginebench.model.request import Sampling
from enginebench.model.scenario import ConcurrencyLoad, Readiness, Scenario, Target, Timeouts, Workload

_SECTIONS: Mapping[Loc, type] = {
    (): Scenario,
    ("targets", "*"): Target,
    ("targets", "*", "readiness"): Readiness,
    ("workload",): Workload,
    ("workload", "sampling"): Sampling,
    ("load", "*"): ConcurrencyLoad,
    ("timeouts",): Timeouts,
}
_SECRET_KEY = re.compile(
    r"(^|_)(api_?key|(access|private|secret)_?key|secret|pass(word|wd|phrase)|authorization|bearer"
    r"|credentials?|(auth|access|api|hf|hub|bearer|session|refresh|github)_?token)$|^(token|key)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"\b(sk-[\w-]{16,}|hf_\w{16,}|gh[opsu]_\w{20,}|gsk_\w{20,}|nvapi-[\w-]{20,}|xai-\w{20,}|AKIA[0-9A-Z]{16}"
    r"|AIza[\w-]{30,}|Bearer\s+\S{8,})"
)


@dataclass(frozen=True, slots=True)
class _NotYet:
    """Something that the design has and this version has not."""

    where: Loc
    """Where it stands; "*" is any position of a list."""
    refused: Callable[[Any], bool]
    what: str
    instead: str


def _any(value: Any) -> bool:
    return True


def _one_of(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


_NOT_YET = (
    _NotYet(("fleet",), _any, "`fleet`", "leave it out: the load comes from this machine"),
    _NotYet(("slo",), _any, "`slo`", "leave it out: the report has every percentile"),
    _NotYet(("together",), _any, "`together`", "leave it out: targets are measured one after another"),
    _NotYet(
        ("client",),
        _one_of("httpx", "openai", "openai_sdk", "ring"),
        "client {value}",
        "use `client: auto`",
    ),
    _NotYet(
        ("workers",),
        lambda value: str(value).isdecimal() and int(value) > 1,
        "more than one worker",
        "use `workers: auto`; one carries some 45,000 chunks a second",
    ),
    _NotYet(
        ("workload", "kind"), _one_of("jsonl", "sharegpt"), "workload kind {value}", "use `kind: synthetic`"
    ),
    _NotYet(
        ("load", "*", "kind"),
        _one_of("rate", "burst", "ramp", "trace", "sessions", "capacity"),
        "load kind {value}",
        "use `kind: concurrency`",
    ),
    _NotYet(
        ("targets", "*", "url"),
        lambda value: isinstance(value, list),
        "a list of URLs",
        "name one target for each URL",
    ),
    _NotYet(("targets", "*", "via"), _one_of("ray"), "via {value}", "use `via: process` or `container`"),
    _NotYet(
        ("targets", "*", "endpoint"),
        _one_of("responses", "messages", "generate_stream"),
        "endpoint {value}",
        "use chat or completions",
    ),
    _NotYet(("targets", "*", "price"), _any, "`price`", "leave it out: costs are not computed"),
    _NotYet(("targets", "*", "budget"), _any, "`budget`", "leave it out and bound the run with `requests`"),
    _NotYet(("targets", "*", "metrics_url"), _any, "`metrics_url`", "leave it out"),
    _NotYet(("targets", "*", "headers"), _any, "`headers`", "leave it out; a key goes by `api_key_env`"),
    _NotYet(("targets", "*", "simulate"), _any, "`simulate`", "use `launch: mock`"),
)


def check_keys(settings: Settings) -> None:
    """Raises ConfigError for a secret, for what this version cannot do yet, and for unknown keys."""
    for loc, value in _walk(settings.data, ()):
        _refuse_secrets(settings, loc, value)
    for row in _NOT_YET:
        for loc, value in _found(settings.data, row.where, ()):
            if row.refused(value):
                what = row.what.format(value=repr(value))
                raise settings.error(loc, f"{what} is not in this version yet; {row.instead}")
    for where, kind in _SECTIONS.items():
        for loc, section in _found(settings.data, where, ()):
            if isinstance(section, dict):
                _refuse_unknown(settings, loc, section, kind)


def known_keys(kind: type) -> list[str]:
    """The YAML keys of a section: durations lose the unit that their fields carry."""
    return [field.name.removesuffix("_ns") for field in fields(kind)]


def _refuse_unknown(settings: Settings, loc: Loc, section: dict[str, Any], kind: type) -> None:
    known = known_keys(kind)
    for key in section:
        if key in known:
            continue
        homes = [where for where, other in _SECTIONS.items() if key in known_keys(other)]
        hint = f"; it belongs {_described(homes[0])}" if homes else nearest(key, known)
        raise settings.error((*loc, key), f"unknown key {key!r}{hint}")


def _described(where: Loc) -> str:
    return (
        f"under `{'.'.join(str(part) for part in where if part != '*')}`"
        if where
        else "at the top of the file"
    )


def _refuse_secrets(settings: Settings, loc: Loc, value: Any) -> None:
    if value is None or not (_is_secret_place(loc, value) or _is_secret_text(value)):
        return
    name = ".".join(map(str, loc))
    if loc[2:3] in (("env",), ("options",)):
        advice = "export it in the shell instead: engines inherit its environment"
    else:
        advice = "write `api_key_env: NAME` (of a variable) or `api_key_file: PATH` in the target"
    # The value is not repeated: this line may end up in a log.
    raise settings.error(loc, f"`{name}` holds a secret, and would be stored with the run; {advice}")


def _is_secret_place(loc: Loc, value: Any) -> bool:
    key = loc[-1] if loc else ""
    if isinstance(key, int):
        # One word of a command line: --api-key, or --api-key=... But a reference is no secret.
        if not isinstance(value, str) or not value.startswith("-"):
            return False
        flag, _, text = value.partition("=")
        return text != "{api_key}" and _is_secret_key(flag)
    is_variable = len(loc) == 4 and (loc[0], loc[2]) == ("targets", "env")
    return bool(SECRET_VARIABLE.search(key)) if is_variable else _is_secret_key(key)


def _is_secret_key(key: str) -> bool:
    return bool(_SECRET_KEY.search(key.lstrip("-").replace("-", "_")))


def _is_secret_text(value: Any) -> bool:
    return isinstance(value, str) and bool(_SECRET_VALUE.search(value))


def _walk(value: Any, loc: Loc) -> Iterator[tuple[Loc, Any]]:
    yield loc, value
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from _walk(item, (*loc, key))


def _found(value: Any, where: Loc, loc: Loc) -> Iterator[tuple[Loc, Any]]:
    """Everything in `value` at a path that may hold "*"."""
    if not where:
        yield loc, value
    elif where[0] == "*" and isinstance(value, list):
        for i, item in enumerate(value):
            yield from _found(item, where[1:], (*loc, i))
    elif isinstance(value, dict) and where[0] in value:
        yield from _found(value[where[0]], where[1:], (*loc, where[0]))
