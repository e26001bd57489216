"""What an earlier run left behind: engines whose owner is gone, and with it the guard that ends them.

That takes both to be killed at once, as the kernel does when memory is short. They are known by the
mark in their environment (marks.py), and containers by their label. Not found: processes of another
user, and an engine's process that has overwritten its own environment.
"""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path

import psutil

from enginebench.engines import container, guard
from enginebench.engines.marks import RUN, owner_is_gone
from enginebench.engines.ports import Holder

_GUARD = "/".join(Path(guard.__file__).parts[-3:])
_KILL_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Orphans:
    processes: tuple[psutil.Process, ...]
    containers: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.processes or self.containers)

    def __str__(self) -> str:
        """`process 12 (vllm serve m) and container enginebench-vllm-8000-1f2e3d`"""
        found = [str(holder) for process in self.processes if (holder := _holder(process))]
        return " and ".join([*found, *(f"container {name}" for name in self.containers)])

    def ending(self) -> str:
        """A shell command that ends them by force."""
        pids = [str(process.pid) for process in self.processes]
        kill = [f"kill -9 {' '.join(pids)}"] if pids else []
        return "; ".join([*kill, *(shlex.join(container.removal(name)) for name in self.containers)])


def find() -> Orphans:
    """All that is left of runs whose owner has ended. What a living guard is about to end is none."""
    marked = [p for p in psutil.process_iter() if (run := _run_of(p)) and owner_is_gone(run)]
    guarded = {p.pid for p in marked if _is_guard(p)}
    left = [p for p in marked if p.pid not in guarded and not guarded & _ancestors(p)]
    containers = [name for name, run in container.labelled() if owner_is_gone(run)]
    return Orphans(tuple(left), tuple(containers))


def end(orphans: Orphans, grace_s: float = 10.0) -> tuple[str, ...]:
    """TERM, a grace, KILL for processes, removal for containers. What outlived that, in words; empty
    when all are gone."""
    # psutil compares the start time before it sends: a pid that was used again is not hit.
    for process in orphans.processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, deaf = psutil.wait_procs(orphans.processes, timeout=grace_s)
    for process in deaf:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _, left = psutil.wait_procs(deaf, timeout=_KILL_PATIENCE_S)
    problems = [f"container {name}: {why}" for name in orphans.containers if (why := container.remove(name))]
    return (*(f"process {process.pid}" for process in left), *problems)


def _run_of(process: psutil.Process) -> str | None:
    """The mark in its environment; None where there is none, or we may not look."""
    try:
        words = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    start = f"{RUN}=".encode()
    return next((word[len(start) :].decode() for word in words if word.startswith(start)), None)


def _is_guard(process: psutil.Process) -> bool:
    try:
        # By the end of its path: it may belong to another installation.
        return any(word.endswith(_GUARD) for word in process.cmdline())
    except psutil.Error:
        return False


def _ancestors(process: psutil.Process) -> set[int]:
    try:
        return {parent.pid for parent in process.parents()}
    except psutil.Error:
        return set()


def _holder(process: psutil.Process) -> Holder | None:
    try:
        return Holder.of(process)
    except psutil.Error:
        return None
