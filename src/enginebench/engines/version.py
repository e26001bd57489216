"""What an engine calls its version, asked of its own command."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from enginebench.engines.readiness import shown


def engine_version(argv: Sequence[str], env: Mapping[str, str], timeout_s: float = 60.0) -> str | None:
    """First line that a version command prints; None when it fails or takes too long.

    Importing an engine may take many seconds, so ask before or after the load, never during it.
    """
    if not argv:
        return None
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also what the command itself left running: its session is its own.
            _kill_group(process.pid)
    if process.returncode != 0:
        return None
    # llama-server prints its version on stderr.
    lines = (out.strip() or err.strip()).decode(errors="replace").splitlines()
    return shown(lines[0]) if lines else None


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
