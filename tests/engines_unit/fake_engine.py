"""A serving engine that misbehaves on request: `python fake_engine.py PORT MODE [NOTES]`, or `serving`.

NOTES is a named pipe or a file to which it writes what a test waits for, one line each: `up PID`
when it runs, `daemon PID` for a child that has left its session. Standard library only, so that it
starts in a moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def event(data: object) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def piece(text: str, finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


STREAM = piece("") + piece("he") + piece("llo", "length") + event(b"[DONE]")
STREAMS = {
    "error-in-stream": piece("he") + event({"error": {"message": "engine is dead"}}) + event(b"[DONE]"),
    "unfinished": piece("he") + event(b"[DONE]"),
    "no-text": piece("") + piece("", "length"),
    "no-done": piece("hello") + piece("", "stop"),
    "not-json": event(b"<html>\x1b[31m"),
    "array": event([1]),
}
MESSAGES = {"out-of-memory": "CUDA out of memory. Tried to allocate 2.00 GiB."}
COMPLETION_STATUS = {
    "cannot-complete": [500],
    "out-of-memory": [500],
    "early": [404, 500, 200],
    "refuses": [422],
    "locked": [401],
}
HEALTH_STATUS = {"loading": [503, 503, 200], "unhealthy": [503]}
LAST_REQUEST = 60
"""At which `dies-under-load` dies: far beyond what is asked before the load."""
MODELS_STATUS = {
    "locked": 401,
    "forbidden": 403,
    "no-models": 404,
    "no-get": 405,
    "not-built": 501,
    "broken": 502,
    "moved": 308,
}
MODELS_BODY = {
    "wrong-model": {"data": [{"id": "another"}]},
    "many-models": {"data": [{"id": f"model-{n}"} for n in range(14)]},
    "aliased": {"data": [{"id": "/models/fake.gguf", "aliases": ["fake"]}]},
    "tagged": {"data": [{"id": "fake:latest"}]},
    "pinned": {"data": []},
    "odd-models": {"models": 3},
}


class FakeServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, mode: str) -> None:
        super().__init__(("127.0.0.1", port), Answer)
        self.mode = mode
        self.asked: Counter[str] = Counter()
        self.bodies: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def do_GET(self) -> None:
        mode = self.server.mode
        self.server.asked[f"GET {self.path}"] += 1
        self.server.headers.append(dict(self.headers))
        if self.path == "/health":
            self._answer(self._in_turn(HEALTH_STATUS.get(mode, [200])), b"{}")
        elif self.path == "/v1/models":
            body = MODELS_BODY.get(mode, {"data": [{"id": "fake"}]})
            self._answer(MODELS_STATUS.get(mode, 200), json.dumps(body).encode())
        else:
            self._answer(404, b"{}")

    def do_POST(self) -> None:
        self.server.asked[f"POST {self.path}"] += 1
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.server.mode == "dies-completing":
            print("CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(1)
        if self.server.mode == "dies-under-load" and self.server.asked[f"POST {self.path}"] >= LAST_REQUEST:
            self._die_streaming()
        status = self._in_turn(COMPLETION_STATUS.get(self.server.mode, [200]))
        if status != 200:
            message = MESSAGES.get(self.server.mode, "unknown field\n ignore_eos")
            self._answer(status, json.dumps({"error": {"message": message}}).encode())
        elif self.server.mode == "endless":
            self._stream_without_end()
        else:
            self._answer(200, STREAMS.get(self.server.mode, STREAM), "text/event-stream")

    def _die_streaming(self) -> None:
        """As vLLM does it when its engine process is gone: an error event, [DONE], a clean end."""
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", flush=True)
        self._answer(200, STREAMS["error-in-stream"], "text/event-stream")
        self.wfile.flush()
        os._exit(1)

    def _stream_without_end(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(ConnectionError):
            while True:
                self.wfile.write(piece("x") * 100)

    def log_message(self, *_: object) -> None:
        pass

    def _in_turn(self, statuses: list[int]) -> int:
        """The answer to the n-th question of this kind; the last one is repeated."""
        return statuses[min(self.server.asked[f"{self.command} {self.path}"], len(statuses)) - 1]

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 308:
            self.send_header("Location", "https://elsewhere.example/v1/models")
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(mode: str, port: int = 0) -> Iterator[FakeServer]:
    """The fake in a thread of the test's own process."""
    with FakeServer(port, mode) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def leave_daemon(notes: str, *, hears: bool = False) -> None:
    """A grandchild in a session of its own, its parent gone, deaf to polite signals unless it `hears`."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            if not hears:
                deaf()
            note(notes, f"daemon {os.getpid()}")
            os.write(tell, b"x")
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(child, 0)
    os.read(told, 1)


def note(notes: str, line: str) -> None:
    with open(notes, "a") as file:
        file.write(line + "\n")


def main(port: int, mode: str, notes: str | None = None) -> None:
    if notes:
        note(notes, f"up {os.getpid()}")
    if mode == "exits":
        print("loading weights", flush=True)
        print("\x1b[31mtorch.OutOfMemoryError: CUDA out of memory\x1b[0m", file=sys.stderr, flush=True)
        sys.exit(1)
    if mode == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "hangs":
        print("waiting for a download", flush=True)
        signal.pause()
    if mode == "deaf":
        deaf()
    if mode == "daemon" and notes:
        leave_daemon(notes)
    if mode == "polite-daemon":
        leave_daemon(os.devnull, hears=True)
    if mode == "floods":
        for number in range(40_000):
            print(f"line {number} " + "x" * 90)
        sys.stdout.flush()
    FakeServer(port, mode).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
