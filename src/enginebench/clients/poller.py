"""One private epoll for all sockets, watched by the asyncio loop and drained in one callback.

asyncio keeps schedules and timers; the hot path stays flat: poll, recvmsg, HTTP framing, append.
Every poll also says which sockets had nothing unread. That moment, `quiet_ns`, bounds from below
when the bytes of the next read arrived, which is how coalesced chunks are told from chunks that
the server sent together.
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors
from typing import Any, Protocol

from enginebench.clock import monotonic_ns

MAX_ROUNDS = 16
"""Polls per callback: bounds how long timers and new sends may wait behind reading."""
_READABLE = select.EPOLLIN | select.EPOLLRDHUP


class Readable(Protocol):
    """What the poller needs of a connection."""

    last_round: int
    """The last poll that reported it."""
    quiet_ns: int
    """The latest clock reading after which its socket was found to hold nothing."""

    def readable(self, before_ns: int) -> int:
        """Reads once. `before_ns` is a clock reading from before the call; returns one from after."""
        ...


class WaitingSelector(selectors.EpollSelector):
    """The loop's own selector; knows until when it was really waiting.

    While the loop blocks in `select`, the first byte on any socket wakes it, so up to the moment
    of waking no socket had anything unread. The time this thread then spent runnable, but without
    a core, does not count as waiting.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waited_until_ns = 0
        try:
            self._schedstat: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0) or self._schedstat is None:
            return ready or (super().select(timeout) if timeout is None or timeout > 0 else ready)
        queued_before_ns = self._queued_ns(self._schedstat)
        ready = super().select(timeout)
        woken_ns = monotonic_ns()
        self.waited_until_ns = woken_ns - (self._queued_ns(self._schedstat) - queued_before_ns)
        return ready

    @staticmethod
    def _queued_ns(schedstat: int) -> int:
        """Time this thread has been runnable without running (proc_pid_schedstat, second field)."""
        return int(os.pread(schedstat, 64, 0).split()[1])

    def close(self) -> None:
        super().close()
        if self._schedstat is not None:
            os.close(self._schedstat)
            self._schedstat = None


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop to run a measuring client in; any other loop works, with wider bounds."""
    return asyncio.SelectorEventLoop(WaitingSelector())


class Poller:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        selector: Any = getattr(loop, "_selector", None)
        self._waiting = selector if isinstance(selector, WaitingSelector) else None
        self._epoll = select.epoll()
        self._connections: dict[int, Readable] = {}
        self._round = 0
        self._polled_ns = monotonic_ns()
        loop.add_reader(self._epoll.fileno(), self._drain)

    @property
    def waited_until_ns(self) -> int:
        """All sockets were empty until then, as far as this thread could tell; 0 when unknown.

        Weaker than `quiet_ns`: a virtual core that its host did not run wakes late unnoticed.
        """
        return self._waiting.waited_until_ns if self._waiting else 0

    def add(self, descriptor: int, connection: Readable) -> None:
        connection.last_round = -1
        connection.quiet_ns = monotonic_ns()
        self._connections[descriptor] = connection
        self._epoll.register(descriptor, _READABLE)

    def remove(self, descriptor: int) -> None:
        """To be called before the descriptor is closed."""
        if self._connections.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def _drain(self) -> None:
        for _ in range(MAX_ROUNDS):
            now_ns = monotonic_ns()
            ready = self._epoll.poll(0, 4096)
            # Sockets that the previous poll did not report were empty then. Those that it did
            # report were empty once they had been read, which their own quiet_ns says.
            before = self._round
            quiet_ns = self._polled_ns
            self._round += 1
            self._polled_ns = now_ns
            if not ready:
                return
            clock_ns = now_ns
            for descriptor, _ in ready:
                connection = self._connections.get(descriptor)
                if connection is None:
                    continue  # closed by an earlier one in this batch
                if connection.last_round != before:
                    connection.quiet_ns = max(connection.quiet_ns, quiet_ns)
                connection.last_round = self._round
                clock_ns = connection.readable(clock_ns)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
