"""Kernel receive stamps: asked for per socket, converted to the monotonic clock.

The kernel stamps a segment when its receive path takes it, whatever this process is doing then. On
loopback that is inside the sender's call; on a network card it follows interrupt moderation and
GRO. The stamp is CLOCK_REALTIME; docs/method.md, "Clocks", says how it becomes monotonic.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from enginebench.clock import realtime_minus_monotonic_ns
from enginebench.units import NS_PER_MS, NS_PER_S

SO_TIMESTAMPNS = 35
"""From asm-generic/socket.h; Python's socket module does not name it."""
ANCILLARY_BYTES = socket.CMSG_SPACE(16)
STEP_NS = NS_PER_MS
"""NTP slews at most 0.5 ms a second, so a larger change between two readings is a step of the clock."""

_TIMESPEC = struct.Struct("@qq")


def ask_for_stamps(sock: socket.socket) -> bool:
    """Whether the kernel agreed to stamp what this socket receives."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


class StampClock:
    """The offset between the stamps' clock and ours; `refresh` it many times a second."""

    def __init__(self, read_offset: Callable[[], int] = realtime_minus_monotonic_ns) -> None:
        self._read_offset = read_offset
        self._offset_ns = read_offset()
        # Stamping is switched on for the whole machine by the first socket that asks, some
        # milliseconds later. This one keeps it on, so that no stream starts without stamps.
        self._keep_on = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ask_for_stamps(self._keep_on)

    def refresh(self) -> bool:
        """Reads the offset again; True when the clock was stepped since the last time."""
        offset_ns = self._read_offset()
        stepped = abs(offset_ns - self._offset_ns) > STEP_NS
        self._offset_ns = offset_ns
        return stepped

    def monotonic_ns(self, ancillary: list[tuple[int, int, bytes]]) -> int | None:
        """The stamp in `recvmsg`'s ancillary data; None when it holds none."""
        if not ancillary:
            return None
        whole_s, rest_ns = _TIMESPEC.unpack(ancillary[0][2])
        return whole_s * NS_PER_S + rest_ns - self._offset_ns  # type: ignore[no-any-return]

    def close(self) -> None:
        self._keep_on.close()
