"""An engine's daemon whose owner and guard were killed at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.engines_unit import fake_engine
from tests.engines_unit.waiting import Notes, wait_for_exit

OWNER = """
import signal, sys
from pathlib import Path
from enginebench.engines.process import EngineSpec, start
fake, notes, log = sys.argv[1:]
argv = [sys.executable, "-S", fake, "{port}", "daemon", notes]
print(start(EngineSpec("fake", argv, Path(log), "fake"))._owned.guard_pid, flush=True)
signal.pause()
"""


@contextmanager
def without_owner(notes: Notes, log: Path) -> Iterator[tuple[int, int]]:
    """Pids of a daemon whose owner is gone, and of its guard, which is stopped and ends nothing. Both
    are gone at the end of the block."""
    argv = [sys.executable, "-c", OWNER, fake_engine.__file__, str(notes.path), str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        guard = int(owner.stdout.readline())
        daemon = notes.pid("daemon")
        os.kill(guard, signal.SIGSTOP)
        owner.kill()
    try:
        yield daemon, guard
    finally:
        for pid in (guard, daemon):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_guard(guard: int, notes: Notes) -> None:
    os.kill(guard, signal.SIGKILL)
    wait_for_exit(guard)
    wait_for_exit(notes.pid("up"))  # goes with its guard
