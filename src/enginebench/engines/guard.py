"""The guard: a small process that owns one engine and ends its whole tree, whatever ends us.

It runs by its own path under `python -I -S`, with the standard library only, so that it starts in
some 30 ms and depends on nothing that the engine's environment could break. It makes itself the
subreaper of everything it starts: a daemon that forks twice and leaves its session still becomes
the guard's child, and is found in /proc when the time comes. What another service started on the
engine's behalf (a container daemon) is no child of anybody here: the order's last command ends it.

stdin:  one line of JSON, the order (see `_Order`); any further byte, or the end of file, means stop.
stdout: one line of JSON per event:
        {"event": "started", "pid": int, "at_ns": int}          monotonic ns, just before the spawn
        {"event": "failed", "errno": int, "message": str}       the command cannot be run
        {"event": "exited", "status": int, "at_ns": int}        -n: by signal n; sent when it happens
        {"event": "stopped", "left": [pid, ...], "last": str | null}
            at the end; `left` did not die of SIGKILL, `last` is what the last command complained of
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time
from typing import IO, Any, Literal, TypedDict

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_EVERY_S = 0.02
_LOG_CHECK_EVERY_S = 1.0
_HEAD_BYTES = 1 << 20
_LAST_PATIENCE_S = 30.0
_KILL_PATIENCE_S = 10.0
"""How long a killed process may take to go: one that hangs in the kernel can outlive SIGKILL."""
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Order(TypedDict):
    argv: list[str]
    env: dict[str, str]
    cwd: str | None
    log: str
    log_limit_bytes: int
    grace_s: float
    last: list[str]
    """A command for the very end, when the tree is gone; empty for none."""
    owner: int
    """Pid of the process that the engine must not outlive."""


def main() -> None:
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        line = stdin.readline()
    if not line:
        return
    order: _Order = json.loads(line)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        _tell(event="failed", errno=ctypes.get_errno(), message="cannot become a child subreaper")
        return
    wake = _wake_on_signals()
    log = _Log(order["log"], order["log_limit_bytes"])
    started_ns = time.monotonic_ns()
    try:
        process = _spawn(order, libc)
    except OSError as error:
        _tell(event="failed", errno=error.errno, message=error.strerror)
        return
    # Reaped below by waitpid(-1), with all the others; without this Popen would warn at the end.
    process.returncode = 0
    _tell(event="started", pid=process.pid, at_ns=started_ns)
    _watch(order["owner"], process.pid, wake, log)
    left = _end_tree(process.pid, order["grace_s"])
    _tell(event="stopped", left=left, last=_run_last(order))


def _wake_on_signals() -> int:
    """A descriptor that becomes readable, with the signal's number, when one of ours arrives."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    # A mask is inherited: an engine born with SIGTERM blocked would never hear it.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (*_STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return read_end


def _spawn(order: _Order, libc: ctypes.CDLL) -> subprocess.Popen[bytes]:
    """The engine in a session of its own, logging straight to its file. Raises OSError."""

    def die_with_guard() -> None:
        # Should the guard itself be killed, at least the main process goes with it.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    # Appending: after the file has been cut, writes go to its new end.
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        return subprocess.Popen(
            order["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=order["env"],
            cwd=order["cwd"],
            start_new_session=True,
            preexec_fn=die_with_guard,
        )
    finally:
        os.close(log)


def _watch(owner_pid: int, engine: int, wake: int, log: _Log) -> None:
    """Returns when the engine has ended, or when it has to: a word on stdin, its end, our owner's
    death or a signal."""
    watched = [0, wake]
    try:
        # A pipe's end can live on in another child of our owner; its pidfd tells for certain.
        owner = os.pidfd_open(owner_pid)
        watched.append(owner)
    except ProcessLookupError:
        return
    except OSError:
        pass  # before Linux 5.3, or forbidden: the pipe alone has to do
    if os.getppid() != owner_pid:
        return
    while True:
        ready, _, _ = select.select(watched, [], [], _LOG_CHECK_EVERY_S)
        if wake in ready:
            signals = os.read(wake, 4096)
            status = _reap(engine)
            if status is not None:
                _tell(event="exited", status=status, at_ns=time.monotonic_ns())
                return
            if any(number in signals for number in _STOP_SIGNALS):
                return
        if any(fd != wake for fd in ready):
            return
        log.shorten()


def _reap(engine: int) -> int | None:
    """Collects every dead child, ours and inherited; the engine's exit status if it was among them."""
    engine_status = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return engine_status
        if pid == 0:
            return engine_status
        if pid == engine:
            engine_status = os.waitstatus_to_exitcode(status)


def _end_tree(engine: int, grace_s: float) -> list[int]:
    """TERM, wait, KILL, until nothing is left; pids that would not die.

    The engine's main process is told first, since well-made engines end their own workers in the
    right order; everyone else when it is gone, or after a third of the grace.
    """
    began = time.monotonic()
    told: set[int] = set()
    while alive := _descendants():
        waited_s = time.monotonic() - began
        if waited_s > grace_s + _KILL_PATIENCE_S:
            return sorted(alive)
        if waited_s >= grace_s:
            _signal(alive, signal.SIGKILL)
        else:
            tell_all = engine not in alive or waited_s >= grace_s / 3
            news = (alive if tell_all else {engine}) - told
            _signal(news, signal.SIGTERM)
            told |= news
        time.sleep(_LOOK_EVERY_S)
        _reap(engine)
    _reap(engine)  # those that died since the last look, so that not even a zombie is left
    return []


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _descendants() -> set[int]:
    """Living processes below this one, from /proc/*/stat (proc(5))."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        # The command's name stands in parentheses and may hold any character.
        fields = stat[stat.rindex(b")") + 2 :].split()
        state, parent, n_threads = fields[0], int(fields[1]), int(fields[17])
        # A zombie with other threads is a process whose main thread alone has ended.
        if state not in (b"Z", b"X") or n_threads > 1:
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    frontier = [os.getpid()]
    while frontier:
        below = children.get(frontier.pop(), [])
        found.update(below)
        frontier += below
    return found


def _run_last(order: _Order) -> str | None:
    """Runs the last command; what it complained of, None when it went well or there is none."""
    if not order["last"]:
        return None
    try:
        done = subprocess.run(
            order["last"],
            env=order["env"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_LAST_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.decode(errors="replace").strip() or "it failed" if done.returncode else None


class _Log:
    """The engine's log, kept short: its head, which tells how the engine was set up, stays in
    `<path>.head`; what came before the last cut in `<path>.1`; the rest in the file itself. A flood
    then takes at most about twice the limit of disk. What is written between copy and cut is lost."""

    def __init__(self, path: str, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._start: int | None = os.stat(path).st_size if os.path.exists(path) else 0
        """Where this start's own lines begin; None once its head has been kept."""

    def shorten(self) -> None:
        try:
            size = os.stat(self._path).st_size
            if size <= self._limit_bytes:
                return
            with open(self._path, "r+b", buffering=0) as log:
                if self._start is not None:
                    # Appended: earlier starts that wrote to the same log have kept theirs there.
                    _copy(log, self._start, min(_HEAD_BYTES, self._limit_bytes), f"{self._path}.head", "ab")
                    self._start = None
                _copy(log, size - self._limit_bytes, self._limit_bytes, f"{self._path}.1", "wb")
                log.truncate(0)
        except OSError:
            pass  # a log that cannot be shortened is no reason to stop the engine


def _copy(log: IO[bytes], at: int, n_bytes: int, path: str, mode: Literal["ab", "wb"]) -> None:
    log.seek(at)
    with open(path, mode, buffering=0) as copy:
        while n_bytes > 0 and (part := log.read(min(n_bytes, 1 << 20))):
            copy.write(part)
            n_bytes -= len(part)


def _tell(**event: Any) -> None:
    with contextlib.suppress(OSError):  # nobody may be there to hear it
        os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    main()
