"""What is to be sent: one Request, and the dialect of the server it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EndpointKind = Literal["chat", "completions"]
ENDPOINT_PATHS: Mapping[str, str] = {"chat": "/chat/completions", "completions": "/completions"}

Phase = Literal["warmup", "measure", "drain"]


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to send. Request `seq` is a pure function of (workload, seed, seq)."""

    seq: int
    prompt: str
    """The user message (chat) or the prompt (completions)."""
    prompt_sha256: str
    asked_prompt_tokens: int
    """Tokens the prompt was made to have; the server counts its chat template on top."""
    asked_output_tokens: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """Equal for every target, so that outputs can be compared."""

    temperature: float | None = 0.0
    ignore_eos: bool = True
    """Ask for the whole output length, where the dialect can."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which fields a server accepts. Data, from a launcher file or data/dialects.yaml."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 (pydantic's own name; not a field)

    name: str = "openai"
    max_tokens_field: str = "max_tokens"
    stream_options: bool = True
    """Accepts `stream_options: {include_usage: true}`."""
    ignore_eos: bool = False
    min_tokens: bool = False
    temperature: bool = True
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Sent with every request, e.g. llama.cpp's `cache_prompt: false`."""
