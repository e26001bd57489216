"""A mock engine in a process of its own, for tests."""

from __future__ import annotations

import select
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

import msgspec

from enginebench.errors import EngineExited, EngineNotReady
from enginebench.mock.config import MockConfig
from enginebench.mock.truth import Truth, parse_truth

_START_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class MockServer:
    base_url: str
    """With the version path: http://127.0.0.1:PORT/v1"""
    port: int
    pid: int
    model: str

    @property
    def root_url(self) -> str:
        """Without the version path, for /health, /metrics and /truth."""
        return self.base_url.removesuffix("/v1")

    def truth(self) -> list[Truth]:
        """The requests that have ended, oldest first (the latest half a million chunks of them)."""
        # No proxy: one set in the environment must not stand between a test and its own server.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.root_url}/truth", timeout=_STOP_TIMEOUT_S) as response:
            return parse_truth(response.read())


@contextmanager
def running(config: MockConfig | None = None) -> Iterator[MockServer]:
    """Serve in a child process while the block lasts; a free loopback port unless `config` names one.

    The truth file is complete when the block has ended. Raises EngineExited when the server cannot
    start or has crashed, with what it said.
    """
    config = config or MockConfig()
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "enginebench.mock"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # Ctrl-C in a terminal must not take the server away under a test that is cleaning up.
            start_new_session=True,
        )
        try:
            base_url = _start(child, config, log)
            yield MockServer(base_url, urlsplit(base_url).port or 0, child.pid, config.model)
        finally:
            _stop(child)
        # A negative status means that someone killed it on purpose.
        if child.returncode > 0:
            raise EngineExited("the mock engine", child.returncode, None, _tail(log))


def _start(child: subprocess.Popen[bytes], config: MockConfig, log: IO[bytes]) -> str:
    """Base URL, once the child has said it."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(msgspec.json.encode(config) + b"\n")
    child.stdin.flush()
    readable, _, _ = select.select([child.stdout], [], [], _START_TIMEOUT_S)
    if not readable:
        raise EngineNotReady("the mock engine", _START_TIMEOUT_S, "none", _tail(log))
    line = child.stdout.readline().decode()
    if not line:
        raise EngineExited("the mock engine", child.wait(_STOP_TIMEOUT_S), None, _tail(log))
    return line.removeprefix("listening on ").strip()


def _stop(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    try:
        child.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")[-2000:].strip()
