"""This host: facts that a reader needs in order to trust or repeat a run, and readings while it lasts."""

from __future__ import annotations

import os
import platform
import socket
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from enginebench.clock import boot_id, realtime_minus_monotonic_ns

_PACKAGES = ("enginebench", "httptools", "msgspec", "numpy", "pyarrow", "pydantic")


def host_facts() -> dict[str, Any]:
    """One entry of run.json's `hosts`. What cannot be found out is None."""
    return {
        "hostname": socket.gethostname(),
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count(logical=True),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
        "governor": _first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "boot_id": boot_id(),
        "realtime_minus_monotonic_ns": realtime_minus_monotonic_ns(),
    }


class HostReader:
    """CPU and memory of the whole machine, from one reading to the next."""

    def __init__(self) -> None:
        psutil.cpu_percent(None)  # what it answers first is about no span at all

    def read(self) -> dict[str, float]:
        """`cpu_share` (0..1 of all cores, since the last reading) and `memory_used_bytes`."""
        memory = psutil.virtual_memory()
        return {
            "cpu_share": psutil.cpu_percent(None) / 100,
            "memory_used_bytes": float(memory.total - memory.available),
        }


def process_readings(pid: int) -> dict[str, float]:
    """`client_cpu_s` (used since its start) and `client_rss_bytes`; nothing once it has ended."""
    try:
        process = psutil.Process(pid)
        cpu = process.cpu_times()
        return {
            "client_cpu_s": cpu.user + cpu.system,
            "client_rss_bytes": float(process.memory_info().rss),
        }
    except psutil.Error:
        return {}


def shares_cores(pid: int) -> bool | None:
    """Whether some process of the tree under `pid` may run on a core that we may run on. None when
    it has ended. (Cores, not their hyperthreads: two threads of one core count as two.)"""
    ours = os.sched_getaffinity(0)
    try:
        root = psutil.Process(pid)
        tree = [root.pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.Error:
        return None
    found = [theirs for theirs in map(_affinity, tree) if theirs is not None]
    return any(ours & theirs for theirs in found) if found else None


def _affinity(pid: int) -> set[int] | None:
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return None


def _cpu_model() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return None
    return platform.processor() or None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
