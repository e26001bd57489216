"""The decoded facts of one request: absolute monotonic ns and counts, never a derived number.

One Record is one row of `records/*.parquet`; docs/formats.md lists the columns. None means not
measured. Record objects live only between the decoder and the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from enginebench.model.capture import StampSource
from enginebench.model.request import Phase

Outcome = Literal["ok", "empty", "error", "truncated", "timeout", "cancelled", "rejected", "dropped"]
OUTCOMES: tuple[Outcome, ...] = (
    "ok", "empty", "error", "truncated", "timeout", "cancelled", "rejected", "dropped",
)  # fmt: skip

ChunkKind = Literal[
    "role", "reasoning", "content", "tool", "usage", "finish", "filter", "ping", "empty", "error", "done"
]
CHUNK_KINDS: tuple[ChunkKind, ...] = (
    "role", "reasoning", "content", "tool", "usage", "finish", "filter", "ping", "empty", "error", "done",
)  # fmt: skip
OUTPUT_KINDS: frozenset[ChunkKind] = frozenset({"reasoning", "content", "tool"})

TokenSource = Literal["token_ids", "continuous_usage", "usage", "logprobs", "tokenizer", "none"]

COALESCED_OVER_NS = 1_000_000
"""An output chunk that shares a read with a later one is coalesced when it may have arrived more
than this long before the read's stamp (docs/method.md, "Coalescing")."""


@dataclass(slots=True)
class Chunks:
    """Per SSE event, in order of arrival; all lists have equal length."""

    arrived_ns: list[int | None] = field(default_factory=list)
    read_ns: list[int] = field(default_factory=list)
    coalesced: list[bool] = field(default_factory=list)
    n_bytes: list[int] = field(default_factory=list)
    """Bytes of the event's data, framing excluded."""
    n_chars: list[int] = field(default_factory=list)
    """Characters of generated text it carries."""
    n_tokens: list[int | None] = field(default_factory=list)
    choice: list[int] = field(default_factory=list)
    kind: list[ChunkKind] = field(default_factory=list)


@dataclass(slots=True)
class Decoded:
    """What the bytes of one response mean, before anything is known of its place in the run."""

    outcome: Outcome
    chunks: Chunks
    error_kind: str | None = None
    """Stable word for the failure, e.g. http_429, in_band_error, idle_timeout (docs/formats.md)."""
    error_message: str | None = None
    """The provider's own words, secrets redacted, at most 500 characters."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    token_source: TokenSource = "none"
    finish_reason: str | None = None
    """Of choice 0."""
    output_chars: int = 0
    output_bytes: int = 0
    text: str | None = None
    """Answer text of choice 0 (reasoning excluded); dropped before storing unless `keep_text`."""
    server_timings: str | None = None
    """JSON as the server sent it (llama.cpp `timings`)."""
    ratelimit: str | None = None
    """JSON: retry-after and x-ratelimit-* headers."""
    request_id: str | None = None


@dataclass(slots=True)
class Record:
    target: str
    load: str
    """Kind of load: concurrency, and later rate, burst, ..."""
    level: float
    """The load's value: the concurrency cap, and later the rate."""
    repeat: int
    phase: Phase
    seq: int
    """Index of the request in the workload: the same prompt for every target."""
    session: int | None
    turn: int | None
    worker: int
    endpoint: str
    """chat | completions | ..."""
    engine_start: int | None
    """Which start of the engine served it, from 0; None for an attached endpoint."""

    intended_ns: int
    started_ns: int
    connected_ns: int | None
    tls_ns: int | None
    sent_ns: int | None
    headers_ns: int | None
    done_ns: int | None

    status: int | None
    outcome: Outcome
    error_kind: str | None
    error_message: str | None
    http_version: str | None
    retried: bool
    connection_reused: bool
    clock_stepped: bool
    stamp_source: StampSource

    chunks: Chunks

    prompt_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cached_tokens: int | None
    reference_tokens: int | None
    token_source: TokenSource
    asked_prompt_tokens: int
    asked_output_tokens: int
    finish_reason: str | None
    prompt_sha256: str
    output_chars: int
    output_bytes: int
    text: str | None
    server_timings: str | None
    ratelimit: str | None
    request_id: str | None
