"""Facts about this host that a reader needs in order to trust or repeat a run."""

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
