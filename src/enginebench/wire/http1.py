"""HTTP/1.1 as bytes: a request in, a response out. No sockets, no waiting, no clock.

Does not do: requests with chunked bodies, content decoding (we ask for `identity`), HTTP/2.
"""

from __future__ import annotations

from collections.abc import Iterable

import httptools

from enginebench.errors import UserError

MAX_HEAD_BYTES = 256 * 1024
"""Status lines, headers and trailers of one response, interim responses included."""


class BadHTTP(Exception):
    """The peer sent something that is not HTTP/1.x, or headers beyond `MAX_HEAD_BYTES`.

    `body_parts` holds what the same read gave before the bad bytes.
    """

    def __init__(self, reason: str, body_parts: list[bytes]) -> None:
        self.reason, self.body_parts = reason, body_parts
        super().__init__(reason)


class _Stop(Exception):
    """Raised inside a callback to leave the parser: the message is over."""


def request_bytes(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """One whole request. `Content-Length` is added unless `headers` has one.

    Raises UserError for a header or target that would break the framing; the value, which may be
    a key, is not shown.
    """
    lines = [f"{method} {_one_line('the URL path', target)} HTTP/1.1"]
    has_length = False
    for name, value in headers:
        has_length = has_length or name.lower() == "content-length"
        lines.append(f"{_one_line('a header name', name)}: {_one_line(f'header {name!r}', value)}")
    if not has_length and (body or method not in {"GET", "HEAD"}):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def _one_line(what: str, text: str) -> str:
    if "\r" in text or "\n" in text or "\0" in text:
        raise UserError(f"{what} holds a line break or NUL; remove it (a key file may end with one)")
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        raise UserError(f"{what} holds a character that HTTP cannot carry; percent-encode it") from None
    return text


class ResponseParser:
    """One response, from its first byte to the end of its body.

    Interim responses (1xx) are skipped. `keep_alive` says after `complete` whether the connection
    can carry another request. Trailers are read and dropped.
    """

    def __init__(self, method: str = "POST") -> None:
        self.status: int | None = None
        self.http_version: str | None = None
        self.headers: list[tuple[str, str]] = []
        """Names in lower case, in order of arrival."""
        self.headers_complete = False
        self.complete = False
        self.keep_alive = False
        self._bodiless = method == "HEAD"
        self._until_close = False
        self._n_counted = 0
        self._parts: list[bytes] = []
        # The parser looks its callbacks up once, so body bytes go straight into the list.
        self.on_body = self._parts.append
        parser = httptools.HttpResponseParser(self)
        # What every other client accepts from servers: bare LF, a length beside chunked coding.
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._parser = parser
        self._parse = parser.feed_data

    def feed(self, data: bytes) -> list[bytes]:
        """Body parts that these bytes completed, framing removed. Raises BadHTTP.

        Bytes after the message are dropped and spoil `keep_alive`, except line ends in the same
        read, which any next response may start with.
        """
        if self.complete:
            self.keep_alive = self.keep_alive and not data
            return []
        try:
            self._parse(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if isinstance(error.__context__, BadHTTP):
                raise error.__context__ from None
            if not self.complete:
                raise self._bad(error) from error
            self.keep_alive = False
        if not self.headers_complete:
            self._count(len(data))
        parts = self._parts.copy()
        self._parts.clear()
        return parts

    def eof(self) -> None:
        """The peer closed. Completes a body whose end is the end of the connection."""
        self.keep_alive = False
        if self.headers_complete and self._until_close:
            self.complete = True

    def on_message_begin(self) -> None:
        if self.complete:
            raise _Stop
        self.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.headers_complete:
            self._count(len(name) + len(value) + 4)
            return
        self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        self.status = status
        self.http_version = self._parser.get_http_version()
        self.headers_complete = True
        self._n_counted = 0
        self._count(sum(len(name) + len(value) + 4 for name, value in self.headers))
        if self._bodiless:
            self._finish()
            raise _Stop
        self._until_close = not _has_known_end(self.headers)

    def on_message_complete(self) -> None:
        if self.headers_complete:
            self._finish()

    def _finish(self) -> None:
        self.complete = True
        self.keep_alive = self._parser.should_keep_alive()

    def _count(self, n_head_bytes: int) -> None:
        self._n_counted += n_head_bytes
        if self._n_counted > MAX_HEAD_BYTES:
            raise BadHTTP(f"response headers over {MAX_HEAD_BYTES // 1024} KiB", self._parts.copy())

    def _bad(self, error: Exception) -> BadHTTP:
        if isinstance(error, httptools.HttpParserUpgrade):
            return BadHTTP("the server switched protocols", self._parts.copy())
        return BadHTTP(str(error) or "not HTTP/1.x", self._parts.copy())


def _has_known_end(headers: list[tuple[str, str]]) -> bool:
    """RFC 9112, 6.3: a body without chunked coding and without a length ends with the connection."""
    fields = dict(headers)
    coding = fields.get("transfer-encoding")
    if coding is not None:
        return coding.lower().rstrip().endswith("chunked")
    return "content-length" in fields
