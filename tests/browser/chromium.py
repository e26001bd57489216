"""Chromium without a window, driven over the DevTools protocol through a pair of pipes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_S = 60.0
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def executable() -> str:
    """$CHROMIUM, or the first known name on the PATH; without one the test fails."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.fail("no Chromium: install one (Debian: apt install chromium) or name it in CHROMIUM")
    return found


class Page:
    """One tab. Everything it reports is kept in `events`, in order: {method, params}."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._to, self._from = to_browser, from_browser
        self._answers: dict[int, dict[str, Any]] = {}
        self._buffer = b""
        self._sent = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        self._read_until(lambda: self._sent in self._answers)
        answer = self._answers.pop(self._sent)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def until_drawn(self) -> None:
        """Returns when all charts of a report are drawn."""
        self.evaluate(
            "new Promise(done => { const look = () =>"
            " document.documentElement.dataset.drawn ? done() : setTimeout(look, 10); look(); })"
        )

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, path: Path, width: int, scheme: str = "light") -> None:
        """Loads a file at a width in CSS pixels, and returns when its load event has come."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.prefer(scheme)
        self.call("Page.navigate", url=path.as_uri())
        self._read_until(lambda: bool(self.seen("Page.loadEventFired")))

    def prefer(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def seen(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] == method]

    def _read_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium said nothing for {DEADLINE_S:.0f} s"
            data = os.read(self._from, 1 << 20)
            assert data, "Chromium ended"
            *messages, self._buffer = (self._buffer + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                else:
                    self.events.append(message)


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with a profile folder of its own, ended when the block is left."""
    browser_in, to_browser = os.pipe()
    from_browser, browser_out = os.pipe()
    # The protocol wants descriptors 3 and 4.
    start = f'exec "$@" 3<&{browser_in} 4>&{browser_out}'
    command = ["bash", "-c", start, "bash", executable(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    with (profile.parent / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            command, pass_fds=(browser_in, browser_out), stdout=log, stderr=subprocess.STDOUT
        )
    os.close(browser_in)
    os.close(browser_out)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)  # Chromium leaves when the pipe closes
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(from_browser)
