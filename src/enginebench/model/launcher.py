"""How an engine is started: the content of a launcher file (`launchers/*.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from enginebench.model.request import Dialect
from enginebench.model.scenario import DurationNs, Readiness
from enginebench.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Image:
    """A container image, run by Docker; the form's command and option words go to its entry point."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    """With its tag. A target may choose another with the option `image`."""
    port: int
    """The port inside the container: {port} of the form's words, while {host} is 0.0.0.0."""
    flags: tuple[str, ...] = ()
    """More words for `docker run`, before the image."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Folder of the host -> folder in the container. May hold {hf_home} and {home}."""
    pass_env: tuple[str, ...] = ()
    """Variables of our own environment that the engine gets, by name: HF_TOKEN."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to run the engine. Words of `command` may hold {model}, {host}, {port}, {python} and
    any option name; an option the user did not set leaves out the words that name it. A word that
    is {command} and nothing else stands for the words of the option `command`."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    command: tuple[str, ...]
    """argv; the option map's flags are appended."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Neutral option name -> argv words, e.g. max_num_seqs: [--parallel, "{value}"]."""
    off_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Switches by what turns them off, e.g. prefix_cache: [--disable-radix-cache]."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    version: tuple[str, ...] = ()
    """argv of a command that prints the engine's version."""
    image: Image | None = None
    """Makes this form a container."""


@dataclass(frozen=True, slots=True)
class Launcher:
    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    title: str
    forms: Mapping[str, Form]
    """By `via`: process, container, wheel, venv."""
    status: Literal["maintained", "maintenance", "mock", "custom"] = "maintained"
    """`maintenance`: its makers fix it, and develop it no further."""
    base_path: str = "/v1"
    readiness: Readiness = Readiness()
    start_timeout_ns: Annotated[DurationNs, Field(alias="start_timeout")] = 600 * NS_PER_S
    dialect: Dialect = Dialect()
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Our name -> the engine's Prometheus name, e.g. generation_tokens."""
    cache_reset: str | None = None
    """Path that empties the prefix cache when it is asked with POST."""
    notes: str = ""
    """What a user should know; first of all whether it was run here or only read about."""
