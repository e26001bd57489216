"""Waiting for what another process does, with a bound and without a clock of our own."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 30.0
"""Far beyond what anything here takes; reached only when a test fails."""


class Notes:
    """A named pipe on which a fake engine tells how far it has got."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        # Open for writing too, so that there is no end of file between two writers.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._text = ""

    def pid(self, word: str) -> int:
        """The process that wrote `word PID`, once it has."""
        while True:
            for line in self._text.splitlines(keepends=True):
                if line.startswith(f"{word} ") and line.endswith("\n"):
                    return int(line.split()[1])
            assert select.select([self._fd], [], [], PATIENCE_S)[0], f"nobody wrote {word!r}"
            self._text += os.read(self._fd, 4096).decode()

    def close(self) -> None:
        os.close(self._fd)


def wait_for_exit(pid: int) -> None:
    """Returns when the process has ended, reaped by its parent or not."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], PATIENCE_S)[0], f"process {pid} still runs"
    finally:
        os.close(fd)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    never = threading.Event()
    for _ in range(round(PATIENCE_S / 0.01)):
        if condition():
            return
        never.wait(0.01)
    raise AssertionError(f"never happened: {what}")
