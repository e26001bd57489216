"""Byte scripts as captures: what the measuring client would have kept of them, at any split."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enginebench.model.capture import Capture, Ending, Read
from enginebench.model.record import OUTPUT_KINDS, Decoded
from enginebench.units import NS_PER_MS
from enginebench.wire.decode import FirstOutput
from enginebench.wire.http1 import BadHTTP, ResponseParser

TESTS = Path(__file__).parents[1]
SENT_NS = 1_000_000_000_000
CLIENT_DELAY_NS = 50_000


@dataclass(frozen=True)
class Script:
    """Writes of a server at their times in ms after the request was sent, and what it does then."""

    writes: tuple[tuple[int, bytes], ...]
    after: str

    @property
    def raw(self) -> bytes:
        return b"".join(data for _, data in self.writes)


def load_cases() -> dict[str, dict[str, Any]]:
    with (TESTS / "cases" / "cases.jsonl").open(encoding="utf-8") as lines:
        return {case["id"]: case for case in map(json.loads, lines)}


def scripts_of(case: Mapping[str, Any]) -> list[Script]:
    """One script for each answer that the case gives in turn; none if it is told in words."""
    stimulus = case["stimulus"]
    answers = stimulus.get("transport_seq") or ([stimulus] if "transport" in stimulus else [])
    return [script(answer["transport"], answer["after"]) for answer in answers]


def script(transport: Sequence[Sequence[Any]], after: str) -> Script:
    times = itertools.accumulate(delay for delay, _ in transport)
    return Script(
        tuple((ms, base64.b64decode(data)) for ms, (_, data) in zip(times, transport, strict=True)), after
    )


def one_write(raw: bytes, after: str = "close") -> Script:
    return Script(((1, raw),), after)


def cut(writes: Iterable[tuple[int, bytes]], at: Sequence[int]) -> list[tuple[int, bytes]]:
    """The writes, cut further at byte offsets of the whole (ascending)."""
    pieces: list[tuple[int, bytes]] = []
    offset = 0
    for ms, data in writes:
        inside = [i - offset for i in at if offset < i < offset + len(data)]
        bounds = [0, *inside, len(data)]
        pieces += [(ms, data[a:b]) for a, b in itertools.pairwise(bounds)]
        offset += len(data)
    return pieces


def play(answer: Script, at: Sequence[int] = ()) -> Capture:
    """The capture of `answer`, with one read for each write and the cuts `at` besides."""
    return capture_of(cut(answer.writes, at), answer.after)


def bytewise(answer: Script) -> Capture:
    return play(answer, range(len(answer.raw)))


def in_one_read(answer: Script, at: Sequence[int] = ()) -> Capture:
    """All bytes at the time of the last write."""
    return capture_of(cut([(answer.writes[-1][0], answer.raw)], at), answer.after)


def capture_of(pieces: Iterable[tuple[int, bytes]], after: str) -> Capture:
    capture = Capture(seq=0, phase="measure", intended_ns=SENT_NS, started_ns=SENT_NS)
    capture.sent_ns = SENT_NS
    capture.stamp_source = "socket"
    parser = ResponseParser()
    for ms, data in pieces:
        arrived_ns = SENT_NS + ms * NS_PER_MS
        try:
            parts = parser.feed(data)
        except BadHTTP as error:
            capture.ending, parts = "bad_http", error.body_parts
        for part in parts:
            capture.reads.append(Read(arrived_ns, arrived_ns + CLIENT_DELAY_NS, arrived_ns, part))
        if parser.complete or capture.ending is not None:
            break
    capture.ending = capture.ending or _ending(parser, after, capture)
    capture.status = parser.status
    capture.http_version = parser.http_version
    capture.headers = parser.headers
    return capture


def _ending(parser: ResponseParser, after: str, capture: Capture) -> Ending:
    if after == "close":
        parser.eof()
    if parser.complete:
        return "complete"
    if after == "close":
        return "closed"
    if after == "rst":
        return "reset"
    first = FirstOutput()
    return "idle_timeout" if any(first.feed(read.body) for read in capture.reads) else "first_token_timeout"


def sse_capture(
    *events: object, ending: Ending = "complete", status: int = 200, content_type: str = "text/event-stream"
) -> Capture:
    """One read per event, 10 ms apart, nothing coalesced. Bytes stand for themselves, anything
    else becomes `data: <JSON>`."""
    capture = Capture(seq=0, phase="measure", intended_ns=SENT_NS, started_ns=SENT_NS)
    capture.status, capture.ending = status, ending
    capture.headers = [("content-type", content_type)]
    for i, event in enumerate(events):
        arrived_ns = SENT_NS + (i + 1) * 10 * NS_PER_MS
        body = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        capture.reads.append(Read(arrived_ns, arrived_ns + CLIENT_DELAY_NS, arrived_ns, body))
    return capture


def delta(index: int = 0, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat chunk of one choice."""
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish}]}


def text(value: str, index: int = 0, finish: str | None = None) -> dict[str, Any]:
    """A text completion chunk of one choice."""
    return {"choices": [{"index": index, "text": value, "finish_reason": finish}]}


def usage(completion_tokens: int, prompt_tokens: int = 5, **more: Any) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, **more}
    return {"choices": [], "usage": counts}


def output_ms(decoded: Decoded, kinds: Iterable[str] = OUTPUT_KINDS) -> list[float]:
    """Arrivals of chunks of these kinds, in ms after sending."""
    wanted = set(kinds)
    chunks = decoded.chunks
    return [
        (arrived_ns - SENT_NS) / NS_PER_MS
        for arrived_ns, kind in zip(chunks.arrived_ns, chunks.kind, strict=True)
        if kind in wanted and arrived_ns is not None
    ]


def facts(decoded: Decoded) -> dict[str, Any]:
    """Everything but the times."""
    chunks = decoded.chunks
    return {name: getattr(decoded, name) for name in Decoded.__slots__ if name != "chunks"} | {
        name: getattr(chunks, name) for name in ("n_bytes", "n_chars", "n_tokens", "choice", "kind")
    }
