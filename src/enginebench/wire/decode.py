"""A capture's bytes as facts: chunks with their times, token counts, how it ended.

One chunk is one SSE event, also when it holds several choices: its kind and choice are those of
its most telling output (`events.output_of`), its characters those of all. A JSON answer that was
not streamed is one chunk, timed by its last byte.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from enginebench.model.capture import Capture, Read
from enginebench.model.record import COALESCED_OVER_NS, OUTPUT_KINDS, ChunkKind, Chunks, Decoded
from enginebench.wire.events import Meaning, answer_of, error_of, finish_of, output_of, read_event
from enginebench.wire.frames import Frame, Logprobs, parse, usage_of
from enginebench.wire.outcome import Heard, judge
from enginebench.wire.redact import message, redact
from enginebench.wire.sse import Event, SSEDecoder
from enginebench.wire.tokens import Counts, UsageSeen, settle

_STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-generation-id")
_MAX_REASON_CHARS = 64


class FirstOutput:
    """Watches a stream until its first generated output; ends the first-token timeout."""

    def __init__(self) -> None:
        self._decoder = SSEDecoder()
        self._seen = False

    def feed(self, body: bytes) -> bool:
        """Whether output has been seen yet. A body that is not a stream never has any here."""
        if not self._seen:
            self._seen = any(read_event(event).output is not None for event in self._decoder.feed(body))
        return self._seen


@dataclass(slots=True)
class _Body:
    """What has been read so far of one response body."""

    chunks: Chunks = field(default_factory=Chunks)
    texts: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """Answer text of choice 0."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Finish reason per choice."""
    choices: set[int] = field(default_factory=set)
    usages: list[UsageSeen] = field(default_factory=list)
    token_ids: dict[int, int] = field(default_factory=dict)
    logprobs: dict[int, int] = field(default_factory=dict)
    timings: Any = None
    error: object | None = None
    error_kind: str | None = None
    is_whole_answer: bool = False


def decode(capture: Capture, secrets: tuple[str, ...] = ()) -> Decoded:
    """The facts of one response. Never raises for anything a server sent.

    `secrets` are replaced by `***` wherever the provider echoes them.
    """
    body = _Body()
    coding = _coding(capture)
    if coding is not None:
        body.error, body.error_kind = (
            f"the body is {coding}-encoded; identity was asked for",
            "unexpected_body",
        )
    elif _is_stream(capture):
        _read_stream(body, capture)
    else:
        _read_document(body, capture)
    outcome, error_kind = judge(capture.status, capture.ending, _heard(body))
    tokens = settle(body.chunks.kind, Counts(body.usages, body.token_ids, body.logprobs, len(body.choices)))
    body.chunks.n_tokens = tokens.per_chunk
    generated = _well_formed("".join(body.texts))
    reason = body.reasons.get(0, next(iter(body.reasons.values()), None))
    error = body.error
    if error is None and error_kind is not None:
        error = capture.ending_detail
    return Decoded(
        outcome=outcome,
        chunks=body.chunks,
        error_kind=error_kind,
        error_message=message(error, secrets),
        prompt_tokens=tokens.prompt,
        output_tokens=tokens.output,
        reasoning_tokens=tokens.reasoning,
        cached_tokens=tokens.cached,
        token_source=tokens.source,
        finish_reason=redact(reason, secrets)[:_MAX_REASON_CHARS] if reason else None,
        output_chars=len(generated),
        output_bytes=len(generated.encode()),
        text=_well_formed("".join(body.answers)) if body.answers else None,
        server_timings=_json(body.timings) if body.timings else None,
        ratelimit=_ratelimit(capture, secrets),
        request_id=_request_id(capture, secrets),
    )


def _coding(capture: Capture) -> str | None:
    """The content coding, where a server or proxy compresses although we ask it not to: events
    that share a compressed block have no times of their own."""
    codings = (value.strip().lower() for name, value in capture.headers if name == "content-encoding")
    return next((coding for coding in codings if coding not in {"", "identity"}), None)


def _is_stream(capture: Capture) -> bool:
    """By the first bytes, since servers send errors as JSON with the content type of a stream,
    and streams with the wrong content type; the header decides where the bytes do not."""
    head = b""
    for read in capture.reads:
        head = (head + read.body).lstrip(b"\xef\xbb\xbf \t\r\n")
        if len(head) >= 8:
            break
    if head.startswith((b"{", b"[", b"<")):
        return False
    content_type = next((value for name, value in capture.headers if name == "content-type"), "")
    return content_type.strip().lower().startswith("text/event-stream") or head.startswith(_STREAM_STARTS)


def _read_stream(body: _Body, capture: Capture) -> None:
    decoder = SSEDecoder()
    kinds = body.chunks.kind
    start = 0
    group: Read | None = None
    for read in capture.reads:
        if group is None or (read.arrived_ns, read.read_ns) != (group.arrived_ns, group.read_ns):
            # The parts that one read gave have equal times; the first has the earliest quiet_ns.
            if group is not None:
                _mark_coalesced(capture, body.chunks, start, group)
            group, start = read, len(kinds)
        for event in decoder.feed(read.body):
            _add(body, read_event(event), event, read)
    if group is None:
        return
    for event in decoder.close():
        meaning = read_event(event)
        # An event cut off by the end of the body is not an event of the wrong form.
        if not meaning.is_malformed:
            _add(body, meaning, event, capture.reads[-1])
    _mark_coalesced(capture, body.chunks, start, group)
    if not kinds and capture.ending == "complete":
        _expect_blank(body, capture)


def _mark_coalesced(capture: Capture, chunks: Chunks, start: int, group: Read) -> None:
    """Flags output chunks from `start` on whose time is not known to `COALESCED_OVER_NS`.

    The kernel keeps one stamp for a read, that of its last segment. An output chunk that more
    bytes follow in the same read (another chunk, `[DONE]`, the end of the body) came at some moment
    between `quiet_ns` and the stamp. Frames without output are no measurement and are never flagged.
    """
    if group.arrived_ns is None or group.arrived_ns - group.quiet_ns <= COALESCED_OVER_NS:
        return
    end = len(chunks.kind) - (capture.done_ns != group.arrived_ns)
    for i in range(start, end):
        chunks.coalesced[i] = chunks.kind[i] in OUTPUT_KINDS


def _add(body: _Body, meaning: Meaning, event: Event, read: Read) -> None:
    frame, output = meaning.frame, meaning.output
    text = "" if output is None else output.text
    choice = 0 if output is None else output.choice
    if meaning.error is not None and body.error is None:
        body.error = meaning.error
        body.error_kind = "malformed_event" if meaning.is_malformed else "stream_error"
    if frame is not None:
        if frame.choices:
            choice = choice if output is not None else frame.choices[0].index
            _read_choices(body, frame)
        usage = usage_of(frame)
        if usage is not None:
            body.usages.append(UsageSeen(len(body.chunks.kind), len(body.reasons), usage))
        if frame.timings is not None:
            body.timings = frame.timings
    if text:
        body.texts.append(text)
    _append(body.chunks, meaning.kind, read, (len(event.data), len(text), choice))


def _append(chunks: Chunks, kind: ChunkKind, read: Read, sizes: tuple[int, int, int]) -> None:
    n_bytes, n_chars, choice = sizes
    chunks.arrived_ns.append(read.arrived_ns)
    chunks.read_ns.append(read.read_ns)
    chunks.coalesced.append(False)
    chunks.n_bytes.append(n_bytes)
    chunks.n_chars.append(n_chars)
    chunks.choice.append(choice)
    chunks.kind.append(kind)


def _read_choices(body: _Body, frame: Frame) -> None:
    """Finish reasons, answer text and token marks of the chunk that is about to be appended."""
    at = len(body.chunks.kind)
    for choice in frame.choices or ():
        body.choices.add(choice.index)
        if choice.index == 0:
            answer = answer_of(choice)
            if answer:
                body.answers.append(answer)
        reason = finish_of(choice)
        if reason is not None:
            body.reasons[choice.index] = reason
        if choice.token_ids is not None:
            body.token_ids[at] = body.token_ids.get(at, 0) + len(choice.token_ids)
        if choice.logprobs is not None:
            body.logprobs[at] = body.logprobs.get(at, 0) + _n_marks(choice.logprobs)


def _n_marks(logprobs: Logprobs) -> int:
    return len(logprobs.content or ()) + len(logprobs.refusal or ()) + len(logprobs.tokens or ())


def _read_document(body: _Body, capture: Capture) -> None:
    """A body that is no stream: an error, a whole answer, or something else entirely."""
    data = b"".join(read.body for read in capture.reads).strip(b"\xef\xbb\xbf \t\r\n")
    if not data:
        return
    frame = parse(data)
    if frame is None:
        if capture.ending == "complete":
            _expect_blank(body, capture)
        return
    output, error = output_of(frame), error_of(frame)
    if error is not None:
        body.error_kind = "in_band_error"
    elif not frame.choices:
        error = frame.message or data[:2000].decode("utf-8", "replace")
        body.error_kind = "unexpected_body"
    body.is_whole_answer = bool(frame.choices)
    kind: ChunkKind = output.kind if output is not None else "error" if error is not None else "finish"
    body.error = error
    # Through the same door as an event, so that usage, text and finish reasons are read alike.
    _add(body, Meaning(kind, frame, output), Event(data), capture.reads[-1])


def _expect_blank(body: _Body, capture: Capture) -> None:
    """A complete body in which neither an event nor JSON was found: its text is the message."""
    data = b"".join(read.body for read in capture.reads).strip(b"\xef\xbb\xbf \t\r\n")
    if not data:
        return
    body.error = data[:4000].decode("utf-8", "replace")
    body.error_kind = "unexpected_body"
    _append(body.chunks, "error", capture.reads[-1], (len(data), 0, 0))


def _heard(body: _Body) -> Heard:
    kinds = body.chunks.kind
    return Heard(
        error_kind=body.error_kind,
        finished=body.is_whole_answer or (bool(body.reasons) and body.choices <= body.reasons.keys()),
        has_output=any(kind in OUTPUT_KINDS for kind in kinds),
        is_silent=all(kind in {"ping", "done"} for kind in kinds),
    )


def _well_formed(text: str) -> str:
    """`text` without lone surrogates, which JSON can escape and UTF-8 cannot hold; halves of one
    character that came in two chunks are joined."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json(value: object) -> str | None:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):  # infinity, a number of 5,000 digits, nesting without end
        return None


def _ratelimit(capture: Capture, secrets: tuple[str, ...]) -> str | None:
    fields = {
        name: redact(value, secrets)
        for name, value in capture.headers
        if name.startswith("retry-after") or "ratelimit" in name
    }
    return _json(fields) if fields else None


def _request_id(capture: Capture, secrets: tuple[str, ...]) -> str | None:
    fields = dict(capture.headers)
    found = next((fields[name] for name in _REQUEST_ID_HEADERS if name in fields), None)
    return redact(found, secrets) if found else None
