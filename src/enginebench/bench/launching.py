"""One engine, started and kept running until somebody ends it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from enginebench.bench.targets import OpenTarget, opened
from enginebench.errors import TargetError
from enginebench.model.scenario import Scenario

_LOOK_EVERY_S = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stop(BaseException):
    """A signal has come. Not an Exception: code on the way that catches those must not swallow it."""


def keep_running(scenario: Scenario, log_path: Path, ready: Callable[[OpenTarget], None]) -> None:
    """Start the scenario's first target, copy its log to stdout as it grows, and call `ready` once it
    has completed a request. Returns when it was stopped by SIGINT, SIGTERM or SIGHUP, with nothing
    left of it. Raises TargetError when it cannot be started or ends by itself."""
    (target, *_) = scenario.targets
    received: list[int] = []
    # Nobody sets it: a wait that a signal's exception can end.
    never = threading.Event()
    try:
        with _signals_stop(received), _followed(log_path), opened(target, scenario, log_path) as engine:
            ready(engine)
            # Looked at as well: an exception is lost when the signal comes inside a finaliser.
            while not received:
                never.wait(_LOOK_EVERY_S)
                if problem := engine.problem():
                    raise TargetError(problem)
    except _Stop:
        return


@contextmanager
def _followed(path: Path) -> Iterator[None]:
    """What is written to the file goes to stdout too, until the block has ended."""
    done = threading.Event()
    thread = threading.Thread(target=_follow, args=(path, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _follow(path: Path, done: threading.Event) -> None:
    at = path.stat().st_size if path.exists() else 0
    is_last = False
    while not is_last:
        is_last = done.wait(_LOOK_EVERY_S)
        try:
            with path.open("rb") as log:
                # A log that was cut since begins anew.
                at = at if at <= path.stat().st_size else 0
                log.seek(at)
                text = log.read()
        except FileNotFoundError:
            continue
        at += len(text)
        try:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            return


@contextmanager
def _signals_stop(received: list[int]) -> Iterator[None]:
    """The first signal ends what is going on; further ones must not break off the clean-up that
    follows. A handler must take no lock, so what it leaves behind is a list."""

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            raise _Stop

    kept = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
