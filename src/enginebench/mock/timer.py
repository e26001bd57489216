"""An alarm at an absolute CLOCK_MONOTONIC time, to the microsecond.

asyncio's own timers wait in epoll, whose timeout is in whole milliseconds, rounded up: every step
would be up to 1 ms late. A timerfd is a descriptor that becomes readable on time. The standard
library has it from Python 3.13 on; ctypes reaches the same two libc calls before that.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable

from enginebench.units import NS_PER_S

_TFD_TIMER_ABSTIME = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class DeadlineTimer:
    """Calls `fire()` in the event loop once for each `arm`. Linux only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fire: Callable[[], None]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        # TFD_NONBLOCK and TFD_CLOEXEC are O_NONBLOCK and O_CLOEXEC (timerfd_create(2)).
        self._fd: int = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            errno = ctypes.get_errno()
            raise OSError(errno, os.strerror(errno))
        self._fire = fire
        self._loop = loop
        loop.add_reader(self._fd, self._expired)

    def arm(self, at_ns: int) -> None:
        """A time in the past fires at once, in the next turn of the loop."""
        # A value of zero would disarm the timer instead.
        seconds, nanoseconds = divmod(max(at_ns, 1), NS_PER_S)
        setting = _Itimerspec(_Timespec(0, 0), _Timespec(seconds, nanoseconds))
        self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(setting), None)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _expired(self) -> None:
        os.read(self._fd, 8)
        self._fire()
