"""Engines in containers, by Docker's command line: `docker run` in the foreground, owned by a guard.

The client passes SIGTERM on to the container. What makes sure is the guard's last command, which
removes the container whatever became of the client. Other container engines are not known.
"""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence

from enginebench.engines.diagnosis import diagnosed
from enginebench.engines.marks import RUN, run_id
from enginebench.engines.readiness import shown
from enginebench.errors import TargetError

_PATIENCE_S = 20.0
_LIST_PATIENCE_S = 5.0
"""Nobody asked for the list: a daemon that hangs must not keep a run waiting."""
_GONE = re.compile(r"no such container|removal of container \S+ is already in progress", re.IGNORECASE)


def refuse_without_daemon(name: str, env: Mapping[str, str]) -> None:
    """Raises TargetError, in one line, when no Docker daemon answers."""
    problem = _complaint(["docker", "version", "--format", "{{.Server.Version}}"], env)
    if problem is not None:
        known = diagnosed(problem)
        raise TargetError(f"{name} cannot be started: {known or problem}")


def owned_run(argv: Sequence[str], container: str) -> tuple[list[str], str]:
    """The words of `docker run` for a container that is ours alone, and its name. A name that nobody
    else uses: removing the container by its name can then hit no other."""
    own_name = f"{container}-{secrets.token_hex(3)}"
    words = [own_name if word == container else word for word in argv]
    at = words.index("run") + 1
    return [*words[:at], "--label", f"{RUN}={run_id()}", *words[at:]], own_name


def removal(name: str) -> list[str]:
    return ["docker", "rm", "--force", "--volumes", name]


def is_gone(complaint: str | None) -> bool:
    """Whether the container is gone, by what `removal` complained of."""
    return complaint is None or _GONE.search(complaint) is not None


def labelled() -> list[tuple[str, str]]:
    """(name, id of its run) of all containers that were started by us; none where there is no Docker."""
    format_ = f'{{{{.Names}}}}\t{{{{.Label "{RUN}"}}}}'
    argv = ["docker", "ps", "--all", "--filter", f"label={RUN}", "--format", format_]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_LIST_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    pairs = (line.partition("\t") for line in done.stdout.splitlines())
    return [(name, run) for name, _, run in pairs]


def remove(name: str) -> str | None:
    """Remove a container; what Docker complained of while it is still there."""
    complaint = _complaint(removal(name), {})
    return None if is_gone(complaint) else complaint


def _complaint(argv: Sequence[str], env: Mapping[str, str]) -> str | None:
    """In one line; None when the command went well."""
    try:
        done = subprocess.run(
            argv,
            env=dict(env) or None,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        )
    except FileNotFoundError:
        return "there is no `docker` on PATH; install Docker, or use `via: process`"
    except PermissionError as error:
        return f"{error.strerror}: docker"
    except subprocess.TimeoutExpired:
        return f"the Docker daemon gave no answer in {_PATIENCE_S:.0f} s"
    return shown(" ".join(done.stderr.split())) if done.returncode else None
