"""The measuring client: plain non-blocking sockets, kernel stamps, nothing decoded on the way.

It does plain HTTP/1.1 over IPv4 and IPv6. It follows no redirect, uses no proxy, and hides no
retry but one: a kept-alive connection that turns out dead before any response byte is replaced
once by a new one, and the capture says so.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import aiohappyeyeballs

from enginebench.clients.connection import Connection
from enginebench.clients.poller import Poller
from enginebench.clients.stamps import StampClock, ask_for_stamps
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture, Ending
from enginebench.model.client import Call, Endpoint
from enginebench.units import NS_PER_S, seconds
from enginebench.wire.http1 import request_bytes

_CLOCK_REFRESH_S = 0.02
"""While NTP slews the clock, by up to 500 ppm, the offset of a second ago is 0.5 ms off."""
_OWN_FAULTS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL}


class SocketClient:
    """Implements `model.client.Client` for one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        parts = urlsplit(endpoint.url)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._path = parts.path or "/"
        self._headers = (
            ("Host", parts.netloc.rpartition("@")[2]),
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "enginebench"),
            *endpoint.headers.items(),
        )
        self._timeouts = endpoint.timeouts
        self._poller = Poller(loop)
        self._clock = StampClock()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._connecting: dict[asyncio.Task[socket.socket], Capture] = {}
        self._addresses: Sequence[aiohappyeyeballs.AddrInfoType] = ()
        self._chunks_of_closed = 0
        shortest_ns = min(self._timeouts.first_token_ns, self._timeouts.idle_ns, self._timeouts.total_ns)
        self._ticks = [
            loop.create_task(
                self._every(seconds(min(max(shortest_ns // 40, 2_000_000), 100_000_000)), self._sweep)
            ),
            loop.create_task(self._every(_CLOCK_REFRESH_S, self._refresh_clock)),
        ]

    @property
    def chunks_read(self) -> int:
        """Body parts received so far, for the live view; not a count of anything reported."""
        return self._chunks_of_closed + sum(c.reads_done for c in (*self._busy, *self._idle))

    def in_flight(self) -> Sequence[Capture]:
        busy = [c.capture for c in self._busy if c.capture is not None]
        return [*busy, *self._connecting.values()]

    async def send(self, call: Call) -> Capture:
        request = request_bytes("POST", self._path, self._headers, call.body)
        capture = Capture(call.seq, call.phase, call.intended_ns, started_ns=monotonic_ns())
        while True:
            connection = self._pooled() or await self._connect(capture)
            if connection is None:
                return capture
            capture.connection_reused = not connection.fresh
            self._busy.add(connection)
            await connection.call(capture, request)
            self._busy.remove(connection)
            if connection.open:
                self._idle.append(connection)
            else:
                self._chunks_of_closed += connection.reads_done
            if not _stale(capture):
                return capture
            # Only the facts that the dead connection left are taken back.
            capture.retried = True
            capture.ending = capture.ending_detail = capture.sent_ns = None

    def _pooled(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
            self._chunks_of_closed += connection.reads_done
        return None

    async def _connect(self, capture: Capture) -> Connection | None:
        """A new connection; None when the capture has ended without one."""
        task = asyncio.get_running_loop().create_task(self._open())
        self._connecting[task] = capture
        try:
            async with asyncio.timeout(seconds(self._timeouts.first_token_ns)):
                sock = await task
        except TimeoutError:
            _fail(capture, "connect_failed", "no connection within the first-token timeout")
            return None
        except OSError as error:
            ending: Ending = "client_error" if _causes(error) & _OWN_FAULTS else "connect_failed"
            _fail(capture, ending, _advice(error))
            return None
        except asyncio.CancelledError:
            if capture.ending is None:
                raise
            return None  # ended by `abort`
        finally:
            del self._connecting[task]
        capture.connected_ns = monotonic_ns()
        return Connection(sock, self._poller, self._clock)

    async def _open(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        if not self._addresses:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self._addresses = [
                (f, kind, protocol, name, address) for f, kind, protocol, name, address in found
            ]
        sock = await aiohappyeyeballs.start_connection(
            self._addresses, happy_eyeballs_delay=0.25, interleave=1, socket_factory=_stamped_socket
        )
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    async def _every(self, period_s: float, work: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(period_s)
            work()

    def _refresh_clock(self) -> None:
        if self._clock.refresh():
            for capture in self.in_flight():
                capture.clock_stepped = True

    def _sweep(self) -> None:
        """Ends the calls that are over a timeout. One pass over all streams is cheaper than a
        timer that every read would have to move."""
        now_ns = monotonic_ns()
        limits = self._timeouts
        for connection in list(self._busy):
            capture = connection.capture
            if capture is None or capture.sent_ns is None:
                continue
            if now_ns - capture.started_ns > limits.total_ns:
                connection.end("total_timeout", f"not done after {limits.total_ns / NS_PER_S:g} s")
            elif connection.awaits_output:
                if now_ns - capture.sent_ns > limits.first_token_ns:
                    connection.end(
                        "first_token_timeout", f"no output for {limits.first_token_ns / NS_PER_S:g} s"
                    )
            elif now_ns - capture.reads[-1].read_ns > limits.idle_ns:
                connection.end("idle_timeout", f"silent for {limits.idle_ns / NS_PER_S:g} s")

    def abort(self) -> None:
        """Ends every call in flight as `cancelled`; each `send` then returns its capture."""
        for task, capture in self._connecting.items():
            _fail(capture, "cancelled", None)
            task.cancel()
        for connection in list(self._busy):
            connection.end("cancelled")

    async def close(self) -> None:
        self.abort()
        for tick in self._ticks:
            tick.cancel()
        await asyncio.gather(*self._ticks, return_exceptions=True)
        for connection in self._idle:
            connection.close()
        self._poller.close()
        self._clock.close()


def _stamped_socket(address: aiohappyeyeballs.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    sock = socket.socket(family, kind, protocol)
    ask_for_stamps(sock)
    return sock


def _stale(capture: Capture) -> bool:
    """A reused connection died before any response byte: the server had closed it meanwhile."""
    return (
        capture.connection_reused
        and not capture.retried
        and capture.ending in ("closed", "reset", "send_failed")
        and capture.headers_ns is None
    )


def _fail(capture: Capture, ending: Ending, detail: str | None) -> None:
    capture.ending, capture.ending_detail = ending, detail


def _causes(error: BaseException) -> set[int]:
    """Error numbers in an OSError or a group of them (one per address tried)."""
    if isinstance(error, BaseExceptionGroup):
        return set().union(*(_causes(e) for e in error.exceptions))
    return {error.errno} if isinstance(error, OSError) and error.errno is not None else set()


def _advice(error: OSError) -> str:
    causes = _causes(error)
    if errno.EMFILE in causes or errno.ENFILE in causes:
        return "this client is out of file descriptors; raise `ulimit -n`"
    if errno.EADDRNOTAVAIL in causes:
        return "no free local port; widen net.ipv4.ip_local_port_range or keep connections alive"
    for cause in causes:
        return os.strerror(cause).lower()
    return str(error)
