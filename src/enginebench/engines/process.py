"""Engines that we start: refuse or spawn, ready or dead, and gone for certain when stopped."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil

from enginebench.clock import monotonic_ns
from enginebench.engines import container
from enginebench.engines.diagnosis import diagnosed
from enginebench.engines.owned import Order, Owned, end, own, poll
from enginebench.engines.ports import free_port, holders, refuse_taken
from enginebench.engines.readiness import NotReadyInTime, Probe, Ready, shown, wait_until_ready
from enginebench.errors import EngineExited, EngineNotReady, TargetError
from enginebench.model.request import Dialect, EndpointKind
from enginebench.model.scenario import Readiness
from enginebench.units import NS_PER_S, seconds

_TAIL_BYTES = 8192
_TAIL_LINES = 15
_SEARCHED_BYTES = 1 << 18
"""Of the log's end, for a diagnosis: the cause can stand far above the last lines."""
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
    container: str | None = None
    """For argv that is a `docker run`: the name in it, which is made unique and removed at the end."""


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
    container: str | None
    _owned: Owned = field(repr=False)
    _log: _Log = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Log:
    """The part of a log file that one start wrote."""

    path: Path
    start: int
    secrets: tuple[str, ...] = field(repr=False)

    def tail(self) -> str:
        return log_tail(self.path, self.start, self.secrets)

    def cause(self, exit_status: int | None, last_answer: str = "") -> str:
        """What went wrong, where the log or the engine's answer tells; empty otherwise."""
        text = _log_end(self.path, self.start, _SEARCHED_BYTES)
        return str(diagnosed(f"{text}\n{last_answer}", exit_status) or "")


def start(spec: EngineSpec) -> Engine:
    """Start an engine and wait until it has completed a request.

    Raises TargetError when the port is taken, when the command cannot be run, or when something
    else answers on the port; EngineExited when the engine ends first; EngineNotReady at the start
    timeout. Whatever is raised, Ctrl-C included, nothing is left running.
    """
    if spec.port:
        refuse_taken(spec.name, spec.host, spec.port)
    port = spec.port or free_port(spec.host)
    argv, name = _with_port(spec.argv, port), None
    if spec.container is not None:
        container.refuse_without_daemon(spec.name, _environment(spec, port))
        argv, name = container.owned_run(argv, _with_port([spec.container], port)[0])
    started_utc = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    size = spec.log_path.stat().st_size if spec.log_path.exists() else 0
    log = _Log(spec.log_path, size, _secrets(spec))
    owned = _spawn(spec, argv, port, container.removal(name) if name else [])
    try:
        ready = _wait(spec, owned, port, log)
        if name is None:  # a container's port is Docker's, which refuses a taken one
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
        container=name,
        _owned=owned,
        _log=log,
    )


def alive(engine: Engine) -> bool:
    """Whether the engine's main process still runs."""
    return poll(engine._owned)


def exited(engine: Engine) -> EngineExited | None:
    """The error to report when the engine has ended by itself; None while it runs, and after `stop`."""
    owned = engine._owned
    if owned.ended or poll(owned):
        return None
    return _exited(engine.name, owned, engine._log)


def stop(engine: Engine) -> None:
    """End the engine's whole process tree: TERM, a grace, KILL. A second call does nothing.

    Raises TargetError when a process outlived even SIGKILL, as one that hangs in a driver can, or
    when its container could not be removed.
    """
    if engine._owned.ended:
        return
    end(engine._owned)
    if engine._owned.left:
        pids = ", ".join(map(str, engine._owned.left))
        raise TargetError(
            f"{engine.name}: processes {pids} survived SIGKILL; the next engine would share with them"
        )
    if engine.container is not None and not container.is_gone(engine._owned.complaint):
        why = shown(engine._owned.complaint or "")
        raise TargetError(
            f"{engine.name}: its container was not removed ({why}); run: "
            f"{shlex.join(container.removal(engine.container))}"
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
    secrets = _secret_values(argv)
    return tuple(
        word.replace(secret, _HIDDEN) if (secret := secrets.get(i)) else word for i, word in enumerate(argv)
    )


def _secret_values(argv: Sequence[str]) -> dict[int, str]:
    """The secret in each word that holds one, by position: `--key VALUE` or `--key=VALUE`."""
    found = {}
    for i, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        if _SECRET_FLAG.fullmatch(flag):
            if equals:
                found[i] = value
            elif i + 1 < len(argv):
                found[i + 1] = argv[i + 1]
    return found


def _secrets(spec: EngineSpec) -> tuple[str, ...]:
    """What must not be quoted from the engine's log or answers."""
    keys = (value.removeprefix("Bearer ") for value in spec.headers.values())
    return (*_secret_values(spec.argv).values(), *keys)


def log_tail(path: Path, start: int = 0, secrets: Sequence[str] = ()) -> str:
    """The last lines of an engine's log from byte `start` on, fit for a terminal; empty when there
    are none. A log that has been cut since is shorter than `start` and read from its beginning."""
    text = _log_end(path, start, _TAIL_BYTES)
    lines = [shown(_ESCAPES.sub("", line), secrets) for line in text.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])


def _log_end(path: Path, start: int, n_bytes: int) -> str:
    """The last bytes of a log from byte `start` on; of its older part too when it has just been cut."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            was_cut = start > size or start == 0
            file.seek(max(0 if was_cut else start, size - n_bytes))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    older = Path(f"{path}.1")
    if was_cut and size < n_bytes and older.exists():
        return _log_end(older, 0, n_bytes - size) + text
    return text


def _environment(spec: EngineSpec, port: int) -> dict[str, str]:
    return {**os.environ, **{name: _with_port([value], port)[0] for name, value in spec.env.items()}}


def _spawn(spec: EngineSpec, argv: Sequence[str], port: int, last: Sequence[str]) -> Owned:
    env = _environment(spec, port)
    try:
        return own(Order(argv, env, spec.log_path, spec.cwd, spec.grace_s, last=last))
    except OSError as error:
        raise TargetError(
            f"{spec.name} cannot be started: {error.strerror or error}: {argv[0]}; "
            "is it installed, and on PATH?"
        ) from error


def _wait(spec: EngineSpec, owned: Owned, port: int, log: _Log) -> Ready:
    def check() -> None:
        if not poll(owned):
            end(owned)  # its last words are in the log only when the whole tree is gone
            raise _exited(spec.name, owned, log)

    probe = Probe(
        name=spec.name,
        base_url=_base_url(spec, port),
        base_path=spec.base_path,
        model=spec.model,
        endpoint=spec.endpoint,
        readiness=spec.readiness,
        dialect=spec.dialect,
        headers=spec.headers,
        secrets=log.secrets,
    )
    try:
        return wait_until_ready(probe, owned.spawned_ns + spec.start_timeout_ns, check)
    except NotReadyInTime as error:
        waited_s = seconds(monotonic_ns() - owned.spawned_ns)
        cause = log.cause(None, error.last_answer)
        raise EngineNotReady(spec.name, waited_s, error.last_answer, log.tail(), cause) from error


def _exited(name: str, owned: Owned, log: _Log) -> EngineExited:
    status = owned.exit_status
    return EngineExited(name, status, log.path, log.tail(), log.cause(status))


def _refuse_stranger(name: str, owned: Owned, port: int) -> None:
    """An engine that could not bind may live on while an older server answers in its place."""
    found = holders(port)
    try:
        tree = {child.pid for child in psutil.Process(owned.guard_pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return  # the engine has just ended; whoever asks it next is told so
    if found and not any(owner.pid in tree for owner in found):
        strangers = " and ".join(map(str, found))
        raise TargetError(f"{name} does not own port {port}: {strangers} answers there; stop it")


def _base_url(spec: EngineSpec, port: int) -> str:
    host = f"[{spec.host}]" if ":" in spec.host else spec.host
    return f"http://{host}:{port}{spec.base_path}"


def _with_port(words: Sequence[str], port: int) -> list[str]:
    return [word.replace("{port}", str(port)) for word in words]


def _since(spawned_ns: int, at_ns: int | None) -> float | None:
    return None if at_ns is None else seconds(at_ns - spawned_ns)
