"""What a person chose, resolved. `catalog.scenario` reads it from YAML.

Field aliases are the YAML keys; inside, names carry their unit. Pydantic validates these plain
dataclasses from outside (`pydantic.TypeAdapter(Scenario)`), so they stay ordinary to construct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer

from enginebench.model.request import EndpointKind, Sampling
from enginebench.units import NS_PER_S, format_duration, parse_duration_ns

DurationNs = Annotated[int, BeforeValidator(parse_duration_ns), PlainSerializer(format_duration)]


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens: fixed, normal (clipped to [low, high]), or uniform over [low, high]."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    kind: Literal["fixed", "normal", "uniform"]
    mean: float
    stdev: float = 0.0
    low: int = 1
    high: int = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Workload:
    __pydantic_config__ = ConfigDict(extra="forbid")

    kind: Literal["synthetic"] = "synthetic"
    input_tokens: TokenCount = TokenCount("fixed", 512)
    output_tokens: TokenCount = TokenCount("fixed", 128)
    language: Literal["english", "chinese", "code"] = "english"
    tokenizer: str | None = None
    """A tokenizer.json, or a folder that holds one; prompts then have exactly the asked length."""
    unique_prompts: bool = True
    """A nonce at the first token, so that no prefix cache hides the prefill."""
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True)
class ConcurrencyLoad:
    """Closed loop: each of `level` users sends the next request when the last one has ended."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    levels: tuple[int, ...]
    kind: Literal["concurrency"] = "concurrency"
    warmup_ns: Annotated[DurationNs, Field(alias="warmup")] = 10 * NS_PER_S
    duration_ns: Annotated[DurationNs | None, Field(alias="duration")] = None
    requests: int | None = None
    """Measure this many requests instead of a duration. Exactly one of the two is set."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    __pydantic_config__ = ConfigDict(extra="forbid")

    first_token_ns: Annotated[DurationNs, Field(alias="first_token")] = 120 * NS_PER_S
    """From sent to the first generated output: pings and role frames do not stop it."""
    idle_ns: Annotated[DurationNs, Field(alias="idle")] = 60 * NS_PER_S
    """Longest silence after the first output."""
    total_ns: Annotated[DurationNs, Field(alias="total")] = 600 * NS_PER_S


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
class Target:
    """Either `launch` (we start it) or `url` (we attach). Secrets only by reference."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    launch: str | None = None
    """A launcher id, or a path to a launcher file."""
    via: str = "process"
    """Form of the launcher: process, container, or another form that its file names."""
    gpus: tuple[int | str, ...] | None = None
    """Devices for the engine, by index (PCI order) or UUID; () for none, None: as the engine likes."""
    hardware: str | None = None
    """What it runs on, in the user's words; a fact that is stored with the run."""
    url: str | None = None
    """Base URL with its version path, e.g. http://host:8000/v1."""
    model: str | None = None
    endpoint: EndpointKind = "chat"
    options: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    dialect: str | None = None
    """Overrides the launcher's dialect; `openai` for an attached endpoint."""
    api_key_env: str | None = None
    api_key_file: str | None = None
    start_timeout_ns: Annotated[DurationNs | None, Field(alias="start_timeout")] = None
    """None: as the launcher says."""
    readiness: Readiness | None = None
    """None: as the launcher says."""


@dataclass(frozen=True, slots=True)
class Scenario:
    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    targets: tuple[Target, ...]
    load: tuple[ConcurrencyLoad, ...]
    workload: Workload = Workload()
    repeats: int = 1
    order: Literal["interleaved", "sequential"] = "interleaved"
    timeouts: Timeouts = Timeouts()
    client: Literal["auto", "socket"] = "auto"
    workers: Literal["auto"] | int = "auto"
    seed: int = 7
    keep_text: bool = False
    allow_public: bool = False
