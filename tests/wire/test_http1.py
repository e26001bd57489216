from __future__ import annotations

from collections.abc import Iterable

import pytest

from enginebench.errors import UserError
from enginebench.wire.http1 import MAX_HEAD_BYTES, BadHTTP, ResponseParser, request_bytes

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def parsed(pieces: Iterable[bytes], method: str = "POST", eof: bool = False) -> tuple[ResponseParser, bytes]:
    parser = ResponseParser(method)
    body = b"".join(part for piece in pieces for part in parser.feed(piece))
    if eof:
        parser.eof()
    return parser, body


def bytewise(raw: bytes) -> list[bytes]:
    return [raw[i : i + 1] for i in range(len(raw))]


COMPLETE = {
    "content length": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "no body by length": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True),
    "chunked": (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde", True),
    "chunk extensions and trailers": (CHUNKED + b"3;q=1\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n", b"abc", True),
    "two interim responses first": (
        b"HTTP/1.1 100 Continue\r\nX-Old: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        b"abc",
        True,
    ),
    "connection close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", b"a", False),
    "old protocol with length": (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", False),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "not modified names a length": (b"HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n", b"", True),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", b"abc", True),
    "length beside chunked": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"a",
        True,
    ),
    "offer of h2 that nobody took": (
        b"HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 1\r\n\r\na",
        b"a",
        True,
    ),
    "no reason phrase": (b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", b"a", True),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_whole_responses_complete_at_their_last_byte_at_every_split(name: str) -> None:
    raw, body, keep_alive = COMPLETE[name]
    for pieces in ([raw], bytewise(raw), *([raw[:i], raw[i:]] for i in range(1, len(raw)))):
        parser, got = parsed(pieces)
        assert (got, parser.complete, parser.keep_alive) == (body, True, keep_alive)
        assert not any(name in {"x-old", "link", "x-sum"} for name, _ in parser.headers)
    if body or b"chunked" in raw:
        assert not parsed([raw[:-1]])[0].complete


def test_headers_status_and_version_are_known_before_the_body() -> None:
    parser, body = parsed([b"HTTP/1.1 429 Slow\r\nRetry-After: 2\r\nX-A: b\r\nContent-Length: 5\r\n\r\n"])
    assert (parser.status, parser.http_version, body) == (429, "1.1", b"")
    assert parser.headers_complete
    assert not parser.complete
    assert parser.headers == [("retry-after", "2"), ("x-a", "b"), ("content-length", "5")]


def test_each_chunk_is_a_part_of_its_own_and_belongs_to_the_read_that_brought_it() -> None:
    parser = ResponseParser()
    assert parser.feed(CHUNKED) == []
    assert parser.feed(b"3\r\nabc\r\n2\r\nde\r\n4\r\nfg") == [b"abc", b"de", b"fg"]
    assert parser.feed(b"hi\r\n") == [b"hi"]
    assert parser.feed(b"0\r\n\r\n") == []
    assert parser.complete


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"]
)
def test_a_body_without_a_length_ends_with_the_connection(head: bytes) -> None:
    parser, body = parsed(bytewise(head + b"abc"))
    assert (body, parser.complete) == (b"abc", False)
    parser.eof()
    assert parser.complete
    assert not parser.keep_alive


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        CHUNKED + b"3\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
    ],
)
def test_an_early_close_leaves_the_response_incomplete(raw: bytes) -> None:
    parser, _ = parsed([raw], eof=True)
    assert not parser.complete
    assert not parser.keep_alive


def test_a_head_response_has_no_body_whatever_its_length_says() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
    for pieces in ([raw], bytewise(raw)):
        parser, body = parsed(pieces, method="HEAD")
        assert (body, parser.complete) == (b"", True)


@pytest.mark.parametrize("extra", [b"junk", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz"])
def test_bytes_after_the_message_spoil_the_connection_but_not_the_message(extra: bytes) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
    for pieces in ([raw + extra], [raw, extra], bytewise(raw + extra)):
        parser, body = parsed(pieces)
        assert (body, parser.complete, parser.keep_alive, parser.status) == (b"abc", True, False, 200)
        assert parser.headers == [("content-length", "3")]


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>no</html>",
        b"HTTP/2 200 OK\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nx",
        CHUNKED + b"zz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
    ],
)
def test_bytes_that_are_not_http_raise_one_typed_error(raw: bytes) -> None:
    for pieces in ([raw], bytewise(raw)):
        with pytest.raises(BadHTTP) as caught:
            parsed(pieces)
        assert caught.value.reason


def test_bad_http_hands_over_the_body_that_came_before_it() -> None:
    with pytest.raises(BadHTTP) as caught:
        ResponseParser().feed(CHUNKED + b"3\r\nabc\r\nzz\r\n")
    assert caught.value.body_parts == [b"abc"]


def test_headers_over_the_limit_are_refused_whole_or_in_pieces() -> None:
    line = b"X-Long: " + b"a" * 1000 + b"\r\n"
    fits = b"HTTP/1.1 200 OK\r\n" + line * 200 + b"Content-Length: 0\r\n\r\n"
    over = b"HTTP/1.1 200 OK\r\n" + line * 300 + b"Content-Length: 0\r\n\r\n"
    endless = b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * MAX_HEAD_BYTES
    trailers = CHUNKED + b"0\r\n" + line * 300

    def in_pieces(raw: bytes) -> list[bytes]:
        return [raw[i : i + 999] for i in range(0, len(raw), 999)]

    for pieces in ([fits], in_pieces(fits)):
        assert parsed(pieces)[0].complete
    for raw in (over, endless, trailers):
        for pieces in ([raw], in_pieces(raw)):
            with pytest.raises(BadHTTP, match="256 KiB"):
                parsed(pieces)


def test_a_request_is_one_head_a_length_and_the_body() -> None:
    raw = request_bytes("POST", "/v1/x", [("Host", "h:1"), ("Accept", "text/event-stream")], b'{"a":1}')
    assert raw == (
        b'POST /v1/x HTTP/1.1\r\nHost: h:1\r\nAccept: text/event-stream\r\nContent-Length: 7\r\n\r\n{"a":1}'
    )
    assert request_bytes("GET", "/", [("Host", "h")], b"") == b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    assert request_bytes("POST", "/", [("content-length", "0")], b"").count(b"ength") == 1


@pytest.mark.parametrize("value", ["sk-abc\n", "sk-abc\r\nX-Evil: 1", "sk-\0abc", "sk-abc\u2019"])
def test_a_header_that_would_break_the_framing_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(UserError) as caught:
        request_bytes("POST", "/", [("authorization", value)], b"")
    assert "authorization" in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_a_target_with_a_line_break_is_refused() -> None:
    with pytest.raises(UserError, match="path"):
        request_bytes("GET", "/a\r\nX: b", [], b"")
