"""Engines that we start: refuse or spawn, ready or dead, and gone for certain when stopped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil

from enginebench.clock import monotonic_ns
from enginebench.engines.owned import Order, Owned, end, own, poll
from enginebench.engines.ports import free_port, holder, refuse_taken
from enginebench.engines.readiness import NotReadyInTime, Probe, Ready, shown, wait_until_ready
from enginebench.errors import EngineExited, EngineNotReady, TargetError
from enginebench.model.launcher import Readiness
from enginebench.model.request import Dialect, EndpointKind
from enginebench.units import NS_PER_S, seconds

_TAIL_BYTES = 8192
_TAIL_LINES = 15
_SECRET_FLAG = re.compile(r"--?[\w-]*(api[-_]?keys?|token|secret|password)", re.IGNORECASE)
_HIDDEN = "***"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Terminal colours and cursor moves (ECMA-48 control sequences)."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine to start. `{port}` in a word of `argv` or a value of `env` becomes the port."""

    name: str
    argv: Sequence[str]
    log_path: Path
    """Its output goes here, appended; the folder must exist."""
    model: str
    """The name under which requests ask for it."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: a free one is chosen."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to our own environment."""
    cwd: Path | None = None
    base_path: str = "/v1"
    endpoint: EndpointKind = "chat"
    dialect: Dialect = field(default_factory=Dialect)
    readiness: Readiness = field(default_factory=Readiness)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For the readiness questions, e.g. Authorization."""
    start_timeout_ns: int = 600 * NS_PER_S
    grace_s: float = 15.0
    """From SIGTERM to SIGKILL when it is stopped."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine. `stop` ends it; so does our own end, whatever its cause."""

    name: str
    base_url: str
    """With the version path: http://127.0.0.1:8000/v1."""
    pid: int
    port: int
    argv: tuple[str, ...]
    """As started, secrets replaced by ***."""
    log_path: Path
    started_utc: str
    ready_s: float
    """From the spawn to healthy and listing the model."""
    first_token_s: float | None
    """From the spawn to the first output of the first completion; None where none was asked."""
    first_completion_s: float | None
    """From the spawn to the end of the first completion."""
    _owned: Owned = field(repr=False)
    _log_start: int = field(repr=False)
    """Size of the log before this start: an earlier start's words are not this one's."""


def start(spec: EngineSpec) -> Engine:
    """Start an engine and wait until it has completed a request.

    Raises TargetError when the port is taken, when the command cannot be run, or when something
    else answers on the port; EngineExited when the engine ends first; EngineNotReady at the start
    timeout. Whatever is raised, Ctrl-C included, nothing is left running.
    """
    if spec.port:
        refuse_taken(spec.name, spec.host, spec.port)
    port = spec.port or free_port(spec.host)
    argv = _with_port(spec.argv, port)
    started_utc = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    log_start = spec.log_path.stat().st_size if spec.log_path.exists() else 0
    owned = _spawn(spec, argv, port)
    try:
        ready = _wait(spec, owned, port, log_start)
        _refuse_stranger(spec.name, owned, port)
    except BaseException:
        end(owned)
        raise
    return Engine(
        name=spec.name,
        base_url=_base_url(spec, port),
        pid=owned.pid,
        port=port,
        argv=redacted(argv),
        log_path=spec.log_path,
        started_utc=started_utc,
        ready_s=seconds(ready.healthy_ns - owned.spawned_ns),
        first_token_s=_since(owned.spawned_ns, ready.first_token_ns),
        first_completion_s=_since(owned.spawned_ns, ready.completed_ns),
        _owned=owned,
        _log_start=log_start,
    )


def alive(engine: Engine) -> bool:
    """Whether the engine's main process still runs."""
    return poll(engine._owned)


def exited(engine: Engine) -> EngineExited | None:
    """The error to report when the engine has ended by itself; None while it runs, and after `stop`."""
    owned = engine._owned
    if owned.ended or poll(owned):
        return None
    tail = log_tail(engine.log_path, engine._log_start)
    return EngineExited(engine.name, owned.exit_status, engine.log_path, tail)


def stop(engine: Engine) -> None:
    """End the engine's whole process tree: TERM, a grace, KILL. A second call does nothing.

    Raises TargetError when a process outlived even SIGKILL, as one that hangs in a driver can.
    """
    if engine._owned.ended:
        return
    end(engine._owned)
    if engine._owned.left:
        pids = ", ".join(map(str, engine._owned.left))
        raise TargetError(
            f"{engine.name}: processes {pids} survived SIGKILL; the next engine would share with them"
        )


@contextmanager
def running(spec: EngineSpec) -> Iterator[Engine]:
    """`start` and, whatever happens inside, `stop`."""
    engine = start(spec)
    try:
        yield engine
    finally:
        stop(engine)


def redacted(argv: Sequence[str]) -> tuple[str, ...]:
    """argv with the values of `--api-key`, `--hf-token` and their like replaced by ***."""
    shown_words: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        is_secret = _SECRET_FLAG.fullmatch(flag) is not None
        shown_words.append(_HIDDEN if hide else flag + equals + _HIDDEN if is_secret and equals else word)
        hide = is_secret and not equals
    return tuple(shown_words)


def log_tail(path: Path, start: int = 0) -> str:
    """The last lines of an engine's log from byte `start` on, fit for a terminal; empty when there
    are none. A log that has been cut since is shorter than `start` and read from its beginning."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start if start <= size else 0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [shown(_ESCAPES.sub("", line)) for line in text.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])


def _spawn(spec: EngineSpec, argv: Sequence[str], port: int) -> Owned:
    env = {**os.environ, **{name: _with_port([value], port)[0] for name, value in spec.env.items()}}
    try:
        return own(Order(argv, env, spec.log_path, spec.cwd, spec.grace_s))
    except OSError as error:
        raise TargetError(
            f"{spec.name} cannot be started: {error.strerror or error}: {argv[0]}; "
            "is it installed, and on PATH?"
        ) from error


def _wait(spec: EngineSpec, owned: Owned, port: int, log_start: int) -> Ready:
    def check() -> None:
        if not poll(owned):
            end(owned)  # its last words are in the log only when the whole tree is gone
            tail = log_tail(spec.log_path, log_start)
            raise EngineExited(spec.name, owned.exit_status, spec.log_path, tail)

    probe = Probe(
        name=spec.name,
        base_url=_base_url(spec, port),
        base_path=spec.base_path,
        model=spec.model,
        endpoint=spec.endpoint,
        readiness=spec.readiness,
        dialect=spec.dialect,
        headers=spec.headers,
    )
    try:
        return wait_until_ready(probe, owned.spawned_ns + spec.start_timeout_ns, check)
    except NotReadyInTime as error:
        waited_s = seconds(monotonic_ns() - owned.spawned_ns)
        tail = log_tail(spec.log_path, log_start)
        raise EngineNotReady(spec.name, waited_s, error.last_answer, tail) from error


def _refuse_stranger(name: str, owned: Owned, port: int) -> None:
    """An engine that could not bind may live on while an older server answers in its place."""
    owner = holder(port)
    if owner is None:
        return
    tree = {child.pid for child in psutil.Process(owned.guard_pid).children(recursive=True)}
    if owner.pid not in tree:
        raise TargetError(
            f"{name} does not own port {port}: process {owner.pid} ({owner.command}) answers there; stop it"
        )


def _base_url(spec: EngineSpec, port: int) -> str:
    host = f"[{spec.host}]" if ":" in spec.host else spec.host
    return f"http://{host}:{port}{spec.base_path}"


def _with_port(words: Sequence[str], port: int) -> list[str]:
    return [word.replace("{port}", str(port)) for word in words]


def _since(spawned_ns: int, at_ns: int | None) -> float | None:
    return None if at_ns is None else seconds(at_ns - spawned_ns)
