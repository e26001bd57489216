"""One HTTP/1.1 connection: bytes in, requests out, answers written as they come.

Keep-alive is served; pipelining is not: what a client sends before its answer has ended is
dropped, and the connection closes after that answer. There is no TLS and no idle timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, cast

import httptools

from enginebench.clock import monotonic_ns
from enginebench.mock import render
from enginebench.mock.asked import Refused
from enginebench.mock.config import MAX_BODY_BYTES, MAX_HEADER_BYTES
from enginebench.mock.truth import Ending

_LINGER_S = 1.0
"""A refused client may still be sending: its bytes are read and dropped for so long, because
closing with unread bytes resets the connection and can take our answer with it."""


@dataclass(slots=True)
class HttpRequest:
    method: str = ""
    target: bytes = b""
    http_version: str = "1.1"
    headers: dict[str, str] = field(default_factory=dict)
    """Names in lower case; the last of repeated ones."""
    body: bytearray = field(default_factory=bytearray)
    arrived_ns: int = 0
    """When the last byte had been parsed."""

    @property
    def path(self) -> str:
        try:
            path = cast(bytes | None, httptools.parse_url(self.target).path) or b""
        except httptools.HttpParserInvalidURLError:
            path = self.target
        return path.decode("latin-1")


class Answer(Protocol):
    """What a connection is in the middle of sending."""

    def abandon(self, ending: Ending) -> None: ...


Handle = Callable[["Connection", HttpRequest], None]
Later = Callable[[float, Callable[[], None]], object]
"""The event loop's `call_later`."""


class Connection(asyncio.Protocol):
    """`handle(connection, request)` either calls `respond`, or sets `answer`, writes as it goes and
    calls `end_answer` after the last byte."""

    def __init__(self, handle: Handle, registry: set[Connection], later: Later) -> None:
        self.answer: Answer | None = None
        self.stalled = False
        """The client is not reading: what we write waits in our buffer."""
        self._handle = handle
        self._registry = registry
        self._later = later
        self._transport: asyncio.Transport
        self.write: Callable[[bytes], None]
        """The transport's own: one call less for each token."""
        self._parser = httptools.HttpRequestParser(self)
        self._closing = False
        self._begin_request()

    def _begin_request(self) -> None:
        self._request = HttpRequest()
        self._n_fed = 0
        self._n_header_bytes = 0
        self._headers_complete = False
        self._complete = False
        self._keep_alive = False
        self._refusal: Refused | None = None

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.write = self._transport.write
        # Whatever the kernel does not take at once is reported, so `stalled` is exact.
        self._transport.set_write_buffer_limits(high=0)
        self._registry.add(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self.answer is not None:
            self._keep_alive = False
            return
        self._n_fed += len(data)
        broken = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            broken = True
        if self._refusal is not None:
            self._refuse(self._refusal)
        elif self._complete:
            self._dispatch(keep_alive=self._keep_alive and not broken)
        elif broken:
            self._refuse(Refused(400, "Invalid HTTP request received.", "Bad Request", None))
        else:
            self._check_size()

    def eof_received(self) -> None:
        self._abandon("client_left")

    def connection_lost(self, exc: Exception | None) -> None:
        self._registry.discard(self)
        self._closing = True
        self._abandon("client_left")

    def pause_writing(self) -> None:
        self.stalled = True

    def resume_writing(self) -> None:
        self.stalled = False

    # Called by httptools. Exceptions here stop the parser; `data_received` looks at what was set.

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("pipelined")

    def on_url(self, url: bytes) -> None:
        self._request.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._n_header_bytes += len(name) + len(value)
        if self._n_header_bytes > MAX_HEADER_BYTES:
            self._refusal = _headers_too_large()
            raise ValueError("headers too large")
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._headers_complete = True
        self._request.method = self._parser.get_method().decode("latin-1")
        self._request.http_version = self._parser.get_http_version()
        length = self._request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            self._refusal = _body_too_large()
            raise ValueError("body too large")
        if self._request.headers.get("expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._request.body += body

    def on_message_complete(self) -> None:
        self._complete = True
        self._keep_alive = self._parser.should_keep_alive()

    # Called by the service.

    def write_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.write(self._head(status, headers))

    def respond(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; JSON unless `headers` say otherwise."""
        head = self._head(
            status, {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}
        )
        self.write(head if self._request.method == "HEAD" else head + body)
        self.end_answer()

    def end_answer(self) -> None:
        self.answer = None
        if self._keep_alive:
            self._begin_request()
        else:
            self._closing = True
            self._transport.close()

    def stop(self) -> None:
        """The server ends: whatever is unfinished is cut off."""
        self._closing = True
        self._abandon("stopped")
        self._transport.abort()

    # Within.

    def _dispatch(self, keep_alive: bool) -> None:
        self._keep_alive = keep_alive
        self._request.arrived_ns = monotonic_ns()
        self._handle(self, self._request)

    def _head(self, status: int, headers: Mapping[str, str]) -> bytes:
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            time.strftime("date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
            "server: enginebench-mock",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        if not self._keep_alive:
            lines.append("connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _refuse(self, refused: Refused) -> None:
        """Answer what is not a request that could be handled, and take no more."""
        self._keep_alive = False
        self._closing = True
        body = render.refusal(refused)
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        self.write(self._head(refused.status, headers) + body)
        self._transport.write_eof()
        self._later(_LINGER_S, self._transport.close)

    def _check_size(self) -> None:
        if not self._headers_complete and self._n_fed > MAX_HEADER_BYTES:
            self._refuse(_headers_too_large())
        elif self._n_fed > MAX_BODY_BYTES + MAX_HEADER_BYTES:
            self._refuse(_body_too_large())

    def _abandon(self, ending: Ending) -> None:
        if self.answer is not None:
            answer, self.answer = self.answer, None
            answer.abandon(ending)


def _headers_too_large() -> Refused:
    message = f"Headers are over {MAX_HEADER_BYTES} bytes."
    return Refused(431, message, "Request Header Fields Too Large", None)


def _body_too_large() -> Refused:
    return Refused(413, f"Request body is over {MAX_BODY_BYTES} bytes.", "Request Entity Too Large", None)
