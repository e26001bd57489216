"""How an engine is started: the content of a launcher file (`launchers/*.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from enginebench.model.request import Dialect
from enginebench.model.scenario import DurationNs
from enginebench.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Readiness:
    __pydantic_config__ = ConfigDict(extra="forbid")

    health: str | None = "/health"
    """Path asked until it answers 200; None where the engine has none."""
    models: bool = True
    """GET /v1/models must then name the model."""
    completion: bool = True
    """Last, one real streamed completion must end well."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to run the engine. Words of `command` may hold {model}, {host}, {port}, {python} and
    any option name; an option the user did not set leaves out the words that name it."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    command: tuple[str, ...]
    """argv; the option map's flags are appended."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Neutral option name -> argv words, e.g. max_num_seqs: [--parallel, "{value}"]."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    version: tuple[str, ...] = ()
    """argv of a command that prints the engine's version."""


@dataclass(frozen=True, slots=True)
class Launcher:
    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    title: str
    forms: Mapping[str, Form]
    """By `via`: process, wheel, later container."""
    status: Literal["maintained", "maintenance", "mock"] = "maintained"
    base_path: str = "/v1"
    readiness: Readiness = Readiness()
    start_timeout_ns: Annotated[DurationNs, Field(alias="start_timeout")] = 600 * NS_PER_S
    dialect: Dialect = Dialect()
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Our name -> the engine's Prometheus name, e.g. generation_tokens."""
    notes: str = ""
