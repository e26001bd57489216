"""Server-sent events from bytes, by the rules of the WHATWG HTML standard, section 9.2.

Does not do: reconnection, so `id:` and `retry:` are read and dropped.
"""

from __future__ import annotations

import msgspec

_BOM = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event, or one comment line."""

    data: bytes
    """The `data:` lines joined by LF; of a comment, its text."""
    event: str | None = None
    """The `event:` field."""
    is_comment: bool = False


class SSEDecoder:
    """Bytes in, events out. An event is out with the read that brings its blank line.

    Lines end with LF, CRLF or CR and nothing else. Comments are events too: servers send them as
    pings. Each byte is looked at a fixed number of times, however the reads cut the stream.
    """

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        """Pieces of the line that has not ended; joined only when it does, so that a long line
        in small reads costs no more than a short one."""
        self._after_cr = False
        self._first_line = True
        self._data: list[bytes] = []
        self._event: str | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Events that these bytes completed, in order."""
        if self._after_cr and data:
            # The CR has ended the line already; its LF may come in the next read.
            self._after_cr = False
            if data[0] == 0x0A:
                data = data[1:]
        if b"\n" not in data and b"\r" not in data:
            if data:
                self._tail.append(data)
            return []
        if self._tail:
            self._tail.append(data)
            data = b"".join(self._tail)
            self._tail.clear()
        # On bytes, splitlines knows LF, CR and CRLF only.
        lines = data.splitlines()
        last = data[-1]
        if last == 0x0D:
            self._after_cr = True
        elif last != 0x0A:
            self._tail.append(lines.pop())
        return self._events(lines)

    def close(self) -> list[Event]:
        """The end of the body: hands out an event whose blank line never came.

        The standard drops it. Servers do end with `data: [DONE]` and no blank line, and with it
        would go a finish reason or a usage; whether the data is whole is for its reader to say.
        """
        lines = [b"".join(self._tail)] if self._tail else []
        self._tail.clear()
        return self._events([*lines, b""])

    def _events(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        if self._first_line and lines:
            self._first_line = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line.startswith(b"data: "):
                self._data.append(line[6:])
            elif not line:
                if self._data:
                    pieces = self._data
                    events.append(Event(pieces[0] if len(pieces) == 1 else b"\n".join(pieces), self._event))
                    self._data = []
                self._event = None
            elif line.startswith(b":"):
                events.append(Event(line[1:].removeprefix(b" "), None, True))
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
