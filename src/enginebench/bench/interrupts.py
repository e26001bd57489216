"""SIGINT, SIGTERM and SIGHUP, heard once and at a moment that fits."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from enginebench.errors import Interrupted


class Interrupts:
    """While it is entered, the first signal raises Interrupted, at once or at the end of a `held`
    block. Later ones only say that the run is being saved; what is ignored (nohup) stays ignored."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._is_held = False
        self._pending: Interrupted | None = None
        self._raised = False
        self._kept: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._kept[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._kept.items():
            signal.signal(number, before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block that no signal breaks off."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        self._raise_pending()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """A part of a `held` block that a signal does break off."""
        self._is_held = False
        try:
            self._raise_pending()
            yield
        finally:
            self._is_held = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._raised or self._pending is not None:
            self._say("stopping, and saving what was measured ...")
            return
        self._pending = Interrupted(f"stopped by {signal.Signals(number).name}")
        if not self._is_held:
            self._raise_pending()

    def _raise_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._raised = True
            raise pending
