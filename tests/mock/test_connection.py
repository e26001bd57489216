"""The HTTP side alone, against a transport that only remembers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginebench.mock.config import MAX_BODY_BYTES, MAX_HEADER_BYTES
from enginebench.mock.http import Connection, HttpRequest
from enginebench.mock.truth import Ending

POST = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
GET = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = self.eof = self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.eof = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class FakeAnswer:
    def __init__(self) -> None:
        self.endings: list[Ending] = []

    def abandon(self, ending: Ending) -> None:
        self.endings.append(ending)


class Side:
    """A connection with what it handed over and what it wrote. Answers every request with `ok`."""

    def __init__(self, handle: Callable[[Connection, HttpRequest], None] | None = None) -> None:
        self.requests: list[HttpRequest] = []
        self.transport = FakeTransport()
        self.registry: set[Connection] = set()
        self.timers: list[Callable[[], None]] = []
        self._handle = handle or (lambda connection, request: connection.respond(200, b"ok"))
        self.connection = Connection(self._remember, self.registry, self._later)
        self.connection.connection_made(self.transport)

    def _remember(self, connection: Connection, request: HttpRequest) -> None:
        self.requests.append(request)
        self._handle(connection, request)

    def _later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.timers.append(callback)

    def feed(self, *pieces: bytes) -> Side:
        for piece in pieces:
            self.connection.data_received(piece)
        return self

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", self.transport.written)]


def begin(answer: FakeAnswer) -> Callable[[Connection, HttpRequest], None]:
    def handle(connection: Connection, request: HttpRequest) -> None:
        connection.answer = answer

    return handle


def test_a_request_is_the_same_wherever_it_is_cut() -> None:
    for cut in range(len(POST)):
        side = Side().feed(POST[:cut], POST[cut:]) if cut else Side().feed(POST)
        [request] = side.requests
        assert (request.method, request.path, bytes(request.body)) == ("POST", "/v1/x", b"hello")
        assert request.headers == {"host": "h", "content-length": "5"}


def test_a_chunked_body_is_put_together() -> None:
    side = Side().feed(
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"3\r\nhel\r\n2\r\nlo\r\n", b"0\r\n\r\n"
    )
    assert bytes(side.requests[0].body) == b"hello"


@pytest.mark.parametrize(
    ("target", "path"),
    [(b"/a/b?c=/d", "/a/b"), (b"http://host:1/a", "/a"), (b"*", "*"), (b"/%61", "/%61"), (b"/\xe9", "/é")],
)
def test_the_path_of_any_target(target: bytes, path: str) -> None:
    assert HttpRequest(target=target).path == path


def test_a_connection_is_kept_for_the_next_request() -> None:
    side = Side().feed(POST, GET, POST)
    assert side.statuses == [200, 200, 200]
    assert not side.transport.closed


@pytest.mark.parametrize(
    "request_bytes", [GET.replace(b"Host: h", b"Connection: close"), GET.replace(b"1.1", b"1.0")]
)
def test_a_client_that_wants_it_closed_gets_it_closed_and_is_told(request_bytes: bytes) -> None:
    side = Side().feed(request_bytes)
    assert side.transport.closed
    assert b"connection: close\r\n" in side.transport.written


def test_head_gets_no_body() -> None:
    side = Side().feed(GET.replace(b"GET", b"HEAD"))
    assert side.transport.written.endswith(b"content-length: 2\r\n\r\n")


def test_a_client_that_asks_before_sending_its_body_is_told_to_go_on() -> None:
    head, body = POST.replace(b"Host: h", b"Expect: 100-continue").split(b"\r\n\r\n")
    side = Side().feed(head + b"\r\n\r\n")
    assert side.statuses == [100]
    assert side.feed(body).statuses == [100, 200]


@pytest.mark.parametrize("pieces", [(POST + GET,), (POST + b"\x00garbage",)])
def test_what_follows_a_request_in_the_same_read_is_dropped_and_the_connection_closed(
    pieces: tuple[bytes, ...],
) -> None:
    side = Side().feed(*pieces)
    assert side.statuses == [200]
    assert len(side.requests) == 1
    assert side.transport.closed


def test_what_comes_during_an_answer_is_dropped_and_the_connection_closed_after_it() -> None:
    side = Side(begin(FakeAnswer())).feed(POST, GET)
    assert len(side.requests) == 1
    assert not side.transport.closed
    side.connection.end_answer()
    assert side.transport.closed


@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_an_upgrade_is_not_taken_up(method: bytes) -> None:
    side = Side().feed(
        POST.replace(b"POST", method).replace(b"Host: h", b"Connection: Upgrade\r\nUpgrade: h2c")
    )
    assert side.statuses == [200]
    assert side.transport.closed


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",  # a TLS client
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_one_400_and_no_more_attention(junk: bytes) -> None:
    side = Side().feed(junk, GET)
    assert side.statuses == [400]
    assert not side.requests
    # It may still be sending: it is told that we will say no more, and is given a moment.
    assert side.transport.eof
    assert not side.transport.closed
    [linger] = side.timers
    linger()
    assert side.transport.closed


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ([b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1)], 413),
        ([b"GET /" + b"a" * MAX_HEADER_BYTES], 431),
        ([b"GET / HTTP/1.1\r\nA: b\r\nC: " + b"d" * MAX_HEADER_BYTES + b"\r\n\r\n"], 431),
        ([b"GET / HTTP/1.1\r\n", *[b"Some-header: value\r\n"] * (MAX_HEADER_BYTES // 18)], 431),
        (
            [
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                *[b"100000\r\n" + b"x" * 0x100000 + b"\r\n"] * 17,
            ],
            413,
        ),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_complete(pieces: list[bytes], status: int) -> None:
    side = Side().feed(*pieces, GET)
    assert side.statuses == [status]
    error = json.loads(side.transport.written.split(b"\r\n\r\n")[1])["error"]
    assert error["code"] == status
    assert not side.requests


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    side = Side().feed(
        b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % MAX_BODY_BYTES, b"x" * MAX_BODY_BYTES
    )
    assert side.statuses == [200]


@pytest.mark.parametrize("leave", ["eof_received", "connection_lost"])
def test_a_client_that_leaves_ends_its_answer_once(leave: str) -> None:
    answer = FakeAnswer()
    side = Side(begin(answer)).feed(POST)
    if leave == "eof_received":
        side.connection.eof_received()
    side.connection.connection_lost(None)
    assert answer.endings == ["client_left"]
    assert not side.registry


def test_a_stopping_server_cuts_its_answers_off() -> None:
    answer = FakeAnswer()
    side = Side(begin(answer)).feed(POST)
    side.connection.stop()
    side.connection.connection_lost(None)
    assert answer.endings == ["stopped"]
    assert side.transport.aborted


@settings(deadline=None)
@given(st.data())
def test_damaged_requests_never_break_the_connection(data: st.DataObject) -> None:
    request = bytearray(data.draw(st.sampled_from([POST, GET])))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(request) - 1))
        request[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    cut = data.draw(st.integers(1, len(request)))
    side = Side().feed(bytes(request[:cut]), bytes(request[cut:]))
    assert side.transport.written.startswith(b"HTTP/1.1 ") or not side.transport.written
    assert len(side.requests) <= 2
