"""Our end of the pipe to a guard (guard.py): start a process tree, hear of its end, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enginebench.clock import monotonic_ns
from enginebench.engines import guard as guard_program
from enginebench.engines.marks import marks
from enginebench.units import NS_PER_MS, NS_PER_S

LOG_LIMIT_BYTES = 64 << 20
GRACE_S = 15.0
"""From SIGTERM to SIGKILL: vLLM needs 2 to 3 s to end its workers in order."""
_SPAWN_PATIENCE_NS = 30 * NS_PER_S
_LAST_PATIENCE_S = 35.0
_END_PATIENCE_NS = 55 * NS_PER_S
"""Beyond the grace: 10 s for the killed to go and 30 s for the last command."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a guard is to start."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(repr=False)
    log_path: Path
    cwd: Path | None = None
    grace_s: float = GRACE_S
    log_limit_bytes: int = LOG_LIMIT_BYTES
    last: Sequence[str] = ()
    """A command that is run when the tree is gone, whatever ended it: to remove a container."""


@dataclass(slots=True)
class Owned:
    """A process tree that cannot outlive us. Made by `own`, ended by `end`."""

    pid: int
    """Of the tree's main process, which leads a session of its own."""
    spawned_ns: int
    exit_status: int | None = None
    """Of the main process when it ended by itself; -n means by signal n. See `poll`."""
    ended: bool = False
    left: tuple[int, ...] = ()
    """Processes that survived SIGKILL when the tree was ended."""
    complaint: str | None = None
    """What the last command complained of when it failed."""
    _guard: subprocess.Popen[bytes] = field(repr=False, kw_only=True)
    _order: Order = field(repr=False, kw_only=True)
    _heard: bytearray = field(default_factory=bytearray, repr=False)

    @property
    def guard_pid(self) -> int:
        return self._guard.pid


def own(order: Order) -> Owned:
    """Start a tree under a guard of its own. Raises OSError when the command cannot be run."""
    order = replace(order, env={**order.env, **marks()})
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", guard_program.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, **marks()},
        start_new_session=True,  # a Ctrl-C in the terminal reaches us, and we tell the guard
    )
    owned = Owned(pid=0, spawned_ns=0, _guard=guard, _order=order)
    try:
        _give_order(owned, order)
        event = _next_event(owned, monotonic_ns() + _SPAWN_PATIENCE_NS)
        if event is None:
            raise OSError("its guard process did not answer")
        if event["event"] == "failed":
            raise OSError(event["errno"], event["message"])
        owned.pid, owned.spawned_ns = event["pid"], event["at_ns"]
    except BaseException:
        end(owned)
        raise
    return owned


def poll(owned: Owned) -> bool:
    """Whether the main process still runs. Its exit status is in `exit_status` when it does not;
    that is None if the guard itself was killed."""
    while not owned.ended and owned.exit_status is None:
        event = _next_event(owned, 0)
        if event is None:
            return owned._guard.poll() is None
        _note(owned, event)
    return False


def end(owned: Owned) -> None:
    """End the whole tree and its guard. Blocks until it is gone; a second call does nothing."""
    if owned.ended:
        return
    guard = owned._guard
    assert guard.stdin is not None
    assert guard.stdout is not None
    if not guard.stdin.closed:
        # A word, not only the end of file: a forked child of ours may hold the pipe open.
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.write(b"stop\n")
        guard.stdin.close()
    deadline_ns = monotonic_ns() + round(owned._order.grace_s * NS_PER_S) + _END_PATIENCE_NS
    while (event := _next_event(owned, deadline_ns)) is not None:
        _note(owned, event)
    try:
        guard.wait(timeout=1)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
    if guard.returncode != 0 and owned.pid:
        _kill_session(owned.pid)
        _run_last(owned)
    guard.stdout.close()
    owned.ended = True


def _give_order(owned: Owned, order: Order) -> None:
    words: dict[str, Any] = {
        "argv": list(order.argv),
        "env": dict(order.env),
        "cwd": None if order.cwd is None else str(order.cwd),
        "log": str(order.log_path.resolve()),
        "log_limit_bytes": order.log_limit_bytes,
        "grace_s": order.grace_s,
        "last": list(order.last),
        "owner": os.getpid(),
    }
    assert owned._guard.stdin is not None
    text = memoryview(json.dumps(words).encode() + b"\n")
    while text:
        text = text[owned._guard.stdin.write(text) :]


def _note(owned: Owned, event: dict[str, Any]) -> None:
    match event["event"]:
        case "exited":
            owned.exit_status = event["status"]
        case "stopped":
            owned.left, owned.complaint = tuple(event["left"]), event["last"]


def _next_event(owned: Owned, deadline_ns: int) -> dict[str, Any] | None:
    """The guard's next line; None at the deadline (0: do not wait) or when there will be no more."""
    assert owned._guard.stdout is not None
    out = owned._guard.stdout.fileno()
    poller = select.poll()
    poller.register(out, select.POLLIN)
    while b"\n" not in owned._heard:
        wait_ns = max(0, deadline_ns - monotonic_ns())
        if not poller.poll(-(-wait_ns // NS_PER_MS)):
            return None
        part = os.read(out, 65536)
        if not part:
            return None
        owned._heard += part
    line, _, rest = bytes(owned._heard).partition(b"\n")
    owned._heard[:] = rest
    event: dict[str, Any] = json.loads(line)
    return event


def _kill_session(leader: int) -> None:
    """The guard was killed from outside, and with it (by its death signal) the main process. What
    is left of the engine's session is killed here; a daemon that had left the session is lost."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == leader:
                    os.kill(int(name), signal.SIGKILL)


def _run_last(owned: Owned) -> None:
    """The guard did not get that far."""
    if not owned._order.last:
        return
    try:
        done = subprocess.run(
            owned._order.last,
            env=owned._order.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LAST_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        owned.complaint = str(error)
    else:
        owned.complaint = (done.stderr.strip() or "it failed") if done.returncode else None
