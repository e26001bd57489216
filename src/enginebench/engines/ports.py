"""Who has a port: found out before an engine is started, and again when it answers."""

from __future__ import annotations

import contextlib
import errno
import socket
from dataclasses import dataclass

import psutil

from enginebench.errors import TargetError

_SHOWN_CHARS = 120


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that is in the way."""

    pid: int
    command: str

    @classmethod
    def of(cls, process: psutil.Process) -> Holder:
        """Raises psutil.Error when it has ended."""
        return cls(process.pid, " ".join(process.cmdline())[:_SHOWN_CHARS] or process.name())

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def free_port(host: str) -> int:
    """A port that nobody listens on now. Somebody else can take it before the engine does; the
    engine then fails to bind, and says so."""
    with socket.socket(_family(host)) as sock:
        sock.bind((host, 0))
        port: int = sock.getsockname()[1]
        return port


def refuse_taken(name: str, host: str, port: int) -> None:
    """Raises TargetError, naming the holder where /proc tells, when `port` cannot be bound."""
    with socket.socket(_family(host)) as sock:
        # As servers do: a port in TIME_WAIT is free, one that is listened on is not.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            raise TargetError(_why_not(name, host, port, error)) from error


def holders(port: int) -> list[Holder]:
    """Who listens on `port` of this machine, on whatever address; those whom we may not know are
    left out."""
    found = {}
    for connection in psutil.net_connections("tcp"):
        address = connection.laddr
        listens = connection.status == psutil.CONN_LISTEN and address and address.port == port
        if listens and connection.pid is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                found[connection.pid] = Holder.of(psutil.Process(connection.pid))
    return list(found.values())


def _why_not(name: str, host: str, port: int, error: OSError) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"{name} cannot listen on {host}:{port}: {error.strerror}"
    by = " and ".join(map(str, holders(port))) or "a process of another user"
    return f"{name} cannot start: port {port} is taken by {by}; stop it, or choose another port"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
