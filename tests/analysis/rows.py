"""Records and runs made by hand for the analysis tests. Times are ms after ORIGIN_NS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from enginebench.analysis.requests import Requests, read_requests
from enginebench.analysis.summary import summarise
from enginebench.model.plan import Cell, CellResult, Window
from enginebench.model.record import ChunkKind, Chunks, Record
from enginebench.model.run import Run
from enginebench.model.summary import Level, LevelWindow, Summary
from enginebench.store.records import table
from enginebench.store.telemetry import SCHEMA as TELEMETRY

ORIGIN_NS = 2**60 + 1
"""Beyond what a float64 holds to the nanosecond: a conversion that loses precision shows."""


def at(ms: float | None) -> int | None:
    return None if ms is None else ORIGIN_NS + round(ms * 1_000_000)


def chunks(
    *times_ms: float, kind: ChunkKind = "content", tokens: Sequence[int | None] | int | None = None
) -> list[tuple[float, ChunkKind, int | None]]:
    """Chunks of one kind: (time, kind, tokens)."""
    per_chunk = tokens if isinstance(tokens, Sequence) else [tokens] * len(times_ms)
    return list(zip(times_ms, [kind] * len(times_ms), per_chunk, strict=True))


def steady(
    first_ms: float, last_ms: float, n: int, tokens: int | None = 1
) -> list[tuple[float, ChunkKind, int | None]]:
    """n evenly spaced content chunks."""
    step = (last_ms - first_ms) / (n - 1)
    return chunks(*(first_ms + i * step for i in range(n)), tokens=tokens)


def record(
    sent: float | None = 0,
    stream: Iterable[tuple[float, ChunkKind, int | None]] = (),
    *,
    started: float | None = None,
    intended: float | None = None,
    connected: float | None = None,
    done: float | str | None = "last chunk",
    delay_ms: float = 0.1,
    stamped: bool | Sequence[bool] = True,
    coalesced: Iterable[int] = (),
    **facts: Any,
) -> Record:
    """A successful measured request unless `facts` (fields of Record) say otherwise."""
    stream = list(stream)
    stamps = [stamped] * len(stream) if isinstance(stamped, bool) else stamped
    began = sent if started is None else started
    ended = (stream[-1][0] if stream else None) if done == "last chunk" else done
    base: dict[str, Any] = {
        "target": "t", "load": "concurrency", "level": 1.0, "repeat": 0, "phase": "measure", "seq": 0,
        "session": None, "turn": None, "worker": 0, "endpoint": "chat", "engine_start": None,
        "intended_ns": at(began if intended is None else intended) or ORIGIN_NS,
        "started_ns": at(began) or ORIGIN_NS,
        "connected_ns": at(connected), "tls_ns": None, "sent_ns": at(sent), "headers_ns": None,
        "done_ns": at(ended),  # type: ignore[arg-type]
        "status": 200, "outcome": "ok", "error_kind": None, "error_message": None, "http_version": "1.1",
        "retried": False, "connection_reused": True, "clock_stepped": False, "stamp_source": "socket",
        "prompt_tokens": 10, "output_tokens": None, "reasoning_tokens": None, "cached_tokens": None,
        "reference_tokens": None, "token_source": "usage", "asked_prompt_tokens": 10,
        "asked_output_tokens": 10, "finish_reason": "stop", "prompt_sha256": "", "output_chars": 0,
        "output_bytes": 0, "text": None, "server_timings": None, "ratelimit": None, "request_id": None,
    }  # fmt: skip
    n = len(stream)
    base["chunks"] = Chunks(
        arrived_ns=[at(t) if stamp else None for (t, _, _), stamp in zip(stream, stamps, strict=True)],
        read_ns=[at(t + delay_ms) or 0 for t, _, _ in stream],
        coalesced=[i in set(coalesced) for i in range(n)],
        n_bytes=[10] * n,
        n_chars=[1] * n,
        n_tokens=[tokens for _, _, tokens in stream],
        choice=[0] * n,
        kind=[kind for _, kind, _ in stream],
    )
    return Record(**{**base, **facts})


def refused(sent: float, after_ms: float = 5, **facts: Any) -> Record:
    """HTTP 429 without output."""
    done = sent + after_ms
    return record(
        sent, done=done, **{"outcome": "rejected", "error_kind": "http_429", "token_source": "none", **facts}
    )


def requests(*records: Record) -> Requests:
    return read_requests(table(records))


def window(start_ms: float, end_ms: float, kind: str = "time") -> LevelWindow:
    start_ns, end_ns = at(start_ms) or 0, at(end_ms) or 0
    return LevelWindow(kind, start_ns, end_ns, (end_ns - start_ns) / 1e9)


def result(
    *,
    target: str = "t",
    level: int = 1,
    repeat: int = 0,
    span_ms: tuple[float, float | None] | None = None,
    n_requests: int | None = None,
    finished: bool = True,
    client: Mapping[str, float | None] | None = None,
) -> CellResult:
    """By duration when `span_ms` is given and `n_requests` is not."""
    duration_ns = 60_000_000_000 if n_requests is None else None
    cell = Cell(target, "concurrency", level, repeat, 0, 0, duration_ns, n_requests)
    span = None if span_ms is None else Window(at(span_ms[0]) or 0, at(span_ms[1]))
    return CellResult(cell, span, None, finished, None if finished else "broke off", dict(client or {}))


def run(records: Sequence[Record], *cells: CellResult, targets: Sequence[Mapping[str, Any]] = ()) -> Run:
    meta = {
        "format": 1,
        "name": "by-hand",
        "status": "done",
        "created_utc": "2026-01-02T03:04:05Z",
        "hosts": [{"hostname": "bench"}],
        "scenario": {"workload": {"unique_prompts": True}},
        "targets": list(targets)
        or [{"name": "t", "engine": "vLLM", "version": "0.1", "model": "m", "endpoint": "chat"}],
    }
    return Run(Path("nowhere"), meta, cells, table(records), TELEMETRY.empty_table(), summarise)


def summary(records: Sequence[Record], *cells: CellResult) -> Summary:
    return summarise(run(records, *cells))


def only_level(records: Sequence[Record], cell: CellResult) -> Level:
    (target,) = summary(records, cell).targets
    (level,) = target.levels
    return level
