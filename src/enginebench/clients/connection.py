"""One TCP connection: the flat read path, and what it leaves in the capture."""

from __future__ import annotations

import asyncio
import socket

from enginebench.clients.poller import Poller
from enginebench.clients.stamps import ANCILLARY_BYTES, StampClock
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture, Ending, Read
from enginebench.units import NS_PER_MS
from enginebench.wire.decode import FirstOutput
from enginebench.wire.http1 import BadHTTP, ResponseParser

READ_BYTES = 65_536
_TOLERANCE_NS = NS_PER_MS
"""A stamp further than this outside (quiet, read) was converted with an offset of before a clock
step; one further before the end of our waiting shows that we were woken late."""


class Connection:
    """Carries one call at a time."""

    __slots__ = (
        "_clock", "_first", "_loop", "_parser", "_poller", "_recvmsg", "_socket", "_waiter",
        "awaits_output", "capture", "fresh", "last_round", "open", "quiet_ns", "reads_done",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, poller: Poller, clock: StampClock) -> None:
        self._socket = sock
        self._recvmsg = sock.recvmsg
        self._poller = poller
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self.capture: Capture | None = None
        self.open = True
        self.fresh = True
        """No call has ended on it yet."""
        self.last_round = -1
        self.quiet_ns = 0
        self.awaits_output = False
        self.reads_done = 0
        """Body parts received since it was opened, over all calls: the live chunk counter."""
        poller.add(sock.fileno(), self)

    async def call(self, capture: Capture, request: bytes) -> None:
        """Writes the request, and returns when the capture has an ending."""
        self.capture = capture
        self._parser = ResponseParser()
        self._first = FirstOutput()
        self.awaits_output = True
        self._waiter = self._loop.create_future()
        try:
            await self._send(capture, memoryview(request))
        except OSError as error:
            self.end("send_failed", _reason(error))
        await self._waiter

    async def _send(self, capture: Capture, rest: memoryview) -> None:
        while rest and capture.ending is None:
            # Read before the call that takes the last byte, so that a reply, however quick, is
            # never older than the request; on loopback the call itself delivers the request.
            capture.sent_ns = monotonic_ns()
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await self._writable()
        if rest:
            # Answered before it had all been sent: the server would take the rest for a new request.
            self.close()

    async def _writable(self) -> None:
        writable = self._loop.create_future()
        descriptor = self._socket.fileno()
        self._loop.add_writer(descriptor, _resolve, writable)
        waiter = self._waiter
        assert waiter is not None
        try:
            await asyncio.wait((writable, waiter), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_writer(descriptor)

    def readable(self, before_ns: int) -> int:
        """Takes what one recvmsg gives. Called by the poller, for every read of every stream."""
        try:
            data, ancillary, _, _ = self._recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return before_ns
        except OSError as error:
            self._lost("reset", _reason(error))
            return before_ns
        read_ns = monotonic_ns()
        quiet_ns = self.quiet_ns
        if len(data) < READ_BYTES:
            # Empty since the call. Not since read_ns: we may have lost the core in between.
            self.quiet_ns = before_ns
        self._take(data, self._clock.monotonic_ns(ancillary), read_ns, quiet_ns)
        return read_ns

    def _take(self, data: bytes, arrived_ns: int | None, read_ns: int, quiet_ns: int) -> None:
        capture = self.capture
        if capture is None:
            # Between calls a server may only close; anything else makes the connection unusable.
            self.close()
            return
        waited_until_ns = self._poller.waited_until_ns
        if arrived_ns is None:
            quiet_ns = max(quiet_ns, waited_until_ns)
        elif arrived_ns > read_ns + _TOLERANCE_NS or arrived_ns < quiet_ns - _TOLERANCE_NS:
            arrived_ns, capture.clock_stepped = None, True
        else:
            capture.stamp_source = "socket"
            if arrived_ns >= waited_until_ns - _TOLERANCE_NS:
                quiet_ns = max(quiet_ns, waited_until_ns)
        if not data:
            self._closed_by_server(arrived_ns, read_ns)
            return
        try:
            parts = self._parser.feed(data)
        except BadHTTP as error:
            self._take_head(capture)
            capture.reads += [Read(arrived_ns, read_ns, quiet_ns, part) for part in error.body_parts]
            self._lost("bad_http", str(error))
            return
        if capture.headers_ns is None and self._parser.headers_complete:
            capture.headers_ns = arrived_ns or read_ns
            self._take_head(capture)
        for part in parts:
            capture.reads.append(Read(arrived_ns, read_ns, quiet_ns, part))
            if self.awaits_output and self._first.feed(part):
                self.awaits_output, capture.saw_output = False, True
        self.reads_done += len(parts)
        if self._parser.complete:
            capture.done_ns = arrived_ns or read_ns
            self.end("complete")

    def _take_head(self, capture: Capture) -> None:
        capture.status = self._parser.status
        capture.http_version = self._parser.http_version
        capture.headers = self._parser.headers

    def _closed_by_server(self, arrived_ns: int | None, read_ns: int) -> None:
        assert self.capture is not None
        try:
            self._parser.eof()
        except BadHTTP as error:
            self._lost("bad_http", str(error))
            return
        if self._parser.complete:
            self.capture.done_ns = arrived_ns or read_ns
            self._lost("complete", None)
        else:
            self._lost("closed", "the server closed the connection before the response was whole")

    def _lost(self, ending: Ending, detail: str | None) -> None:
        self.end(ending, detail)
        self.close()

    def end(self, ending: Ending, detail: str | None = None) -> None:
        """Ends the call in flight. The connection stays usable only after a complete response
        that the server lets us follow with another."""
        capture, self.capture = self.capture, None
        if capture is None:
            return
        capture.ending, capture.ending_detail = ending, detail
        if ending != "complete" or not self._parser.keep_alive:
            self.close()
        self.fresh = False
        if self._waiter is not None:
            _resolve(self._waiter)

    def close(self) -> None:
        if self.open:
            self.open = False
            self._poller.remove(self._socket.fileno())
            self._socket.close()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
