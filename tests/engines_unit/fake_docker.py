"""A Docker client without Docker: `run`, `rm`, `ps` and `version`, as far as enginebench uses them.

As with the real one the containers are the daemon's children, not the client's, so killing the client
ends none of them. The daemon is a thread of the test (`daemon`), the client this file. A container is
the fake engine in the mode that the image is named after, on the published port.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOCKET = "FAKE_DOCKER_SOCKET"
NO_DAEMON = (
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
)
NO_IMAGE = "docker: Error response from daemon: pull access denied for acme/none, repository does not exist"


def client(words: list[str]) -> int:
    """What the executable does."""
    if words[0] == "run":
        name = words[words.index("--name") + 1]
        # The real client too passes signals on and waits for the container's end.
        signal.signal(signal.SIGTERM, lambda *_: _ask(["kill", name]))
    return _ask(words)


def _ask(words: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(os.environ[SOCKET])
        except OSError:
            print(NO_DAEMON, file=sys.stderr)
            return 1
        sock.sendall(json.dumps(words).encode() + b"\n")
        for line in sock.makefile():
            answer = json.loads(line)
            print(answer.get("out", ""), end="")
            print(answer.get("err", ""), end="", file=sys.stderr, flush=True)
            if "exit" in answer:
                return int(answer["exit"])
    return 1


@dataclass
class Container:
    name: str
    labels: dict[str, str]
    process: subprocess.Popen[str]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Daemon(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    engine: str
    """Path of the program that is every image's content."""

    def __init__(self, path: Path, engine: str) -> None:
        super().__init__(str(path), _Call)
        self.engine = engine
        self.containers: dict[str, Container] = {}
        self.asked: list[list[str]] = []
        self.refuses_removal = False


class _Call(socketserver.StreamRequestHandler):
    server: Daemon

    def handle(self) -> None:
        words = json.loads(self.rfile.readline())
        self.server.asked.append(words)
        getattr(self, f"_{words[0]}")(words[1:])

    def _version(self, words: list[str]) -> None:
        self._tell(out="28.2.2\n", exit=0)

    def _run(self, words: list[str]) -> None:
        value = {words[i]: words[i + 1] for i in range(len(words) - 1)}
        name, image = value["--name"], words[-1]
        if image == "acme/none":
            self._tell(err=NO_IMAGE + "\n", exit=125)
            return
        port = value["--publish"].split(":")[-2]
        key, _, label = value["--label"].partition("=")
        process = subprocess.Popen(
            [sys.executable, "-S", self.server.engine, port, image],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.server.containers[name] = Container(name, {key: label}, process)
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._tell(out=line)
        status = process.wait()
        self.server.containers.pop(name, None)
        self._tell(exit=status if status >= 0 else 128 - status)

    def _kill(self, words: list[str]) -> None:
        if container := self.server.containers.get(words[0]):
            container.process.terminate()
        self._tell(exit=0)

    def _rm(self, words: list[str]) -> None:
        name = words[-1]
        container = self.server.containers.get(name)
        if container is None:
            self._tell(err=f"Error response from daemon: No such container: {name}\n", exit=1)
        elif self.server.refuses_removal:
            self._tell(err="Error response from daemon: cannot remove: device busy\n", exit=1)
        else:
            container.end()
            self._tell(exit=0)

    def _ps(self, words: list[str]) -> None:
        key = next(word for word in words if word.startswith("label=")).removeprefix("label=")
        lines = [f"{c.name}\t{c.labels[key]}\n" for c in self.server.containers.values() if key in c.labels]
        self._tell(out="".join(lines), exit=0)

    def _tell(self, **answer: Any) -> None:
        try:
            self.wfile.write(json.dumps(answer).encode() + b"\n")
        except OSError:
            return  # the client was killed


def install(folder: Path) -> None:
    """An executable `docker` in the folder."""
    path = folder / "docker"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S {__file__} "$@"\n')
    path.chmod(0o755)


@contextmanager
def daemon(path: Path, engine: str) -> Iterator[Daemon]:
    with Daemon(path, engine) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            for container in list(server.containers.values()):
                container.end()


if __name__ == "__main__":
    sys.exit(client(sys.argv[1:]))
