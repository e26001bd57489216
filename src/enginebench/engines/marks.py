"""The mark in the environment of everything we start, by which it is known again when we are gone."""

from __future__ import annotations

import os
from pathlib import Path

RUN = "ENGINEBENCH_RUN"


def marks() -> dict[str, str]:
    """Variables for a process that we start."""
    # Without the second, setproctitle (vLLM's workers use it) overwrites the first in /proc.
    return {RUN: run_id(), "SPT_NOENV": "1"}


def run_id() -> str:
    """Names this process for good: boot, pid namespace, pid, and start in ticks since the boot."""
    return f"{_world()}-{os.getpid()}-{_start_ticks(os.getpid())}"


def owner_is_gone(run: str) -> bool:
    """Whether the process of that id has ended. False where that cannot be judged from here: it ran
    in another container, on another machine, or before the last boot."""
    world, _, rest = run.rpartition("-")
    world, _, pid = world.rpartition("-")
    if world != _world() or not pid.isdigit():
        return False
    return str(_start_ticks(int(pid))) != rest


def _world() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"


def _start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (proc(5)); None when the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command's name stands in parentheses and may hold any character.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
