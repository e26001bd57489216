"""Temporary files of ours that do not outlive us, not even when we are killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PROGRAM = "import shutil, sys; sys.stdin.read() or shutil.rmtree(sys.argv[1], ignore_errors=True)"
_ALL_WELL = b"its owner sees to it\n"


@contextmanager
def swept(folder: Path) -> Iterator[None]:
    """Should we be killed inside the block, a small process that waits for that removes the folder.
    When the block ends in any other way the folder stays, and is for the caller to remove."""
    # In a session of its own: a Ctrl-C in the terminal is for us.
    argv = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(folder)]
    sweeper = subprocess.Popen(argv, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
    assert sweeper.stdin is not None
    try:
        yield
    finally:
        with suppress(BrokenPipeError):  # somebody has killed it
            sweeper.stdin.write(_ALL_WELL)
        sweeper.stdin.close()
        sweeper.wait()
