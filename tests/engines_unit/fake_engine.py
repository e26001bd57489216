"""A serving engine that misbehaves on request: `python fake_engine.py PORT MODE [NOTES]`.

NOTES is a file to which it appends what a test waits for: pids of its children, one a line.
Standard library only, so that it starts in a moment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, MODE, NOTES = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or [None])[0]
ASKED: dict[str, int] = {}
"""How often each path was asked."""


def event(data: object) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def piece(text: str, finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


STREAM = piece("") + piece("he") + piece("llo", "length") + event(b"[DONE]")
STREAMS = {
    "error-in-stream": piece("he") + event({"error": {"message": "engine is dead"}}) + event(b"[DONE]"),
    "unfinished": piece("he") + event(b"[DONE]"),
    "no-text": piece("") + piece("", "length"),
    "not-json": event(b"<html>"),
}
COMPLETION_STATUS = {"cannot-complete": [500], "early": [404, 500, 200], "refuses": [422]}
HEALTH_STATUS = {"loading": [503, 503, 200], "unhealthy": [503]}


def in_turn(statuses: list[int], asked: int) -> int:
    """The answer to the n-th question; the last one is repeated."""
    return statuses[min(asked, len(statuses)) - 1]


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _asked(self) -> int:
        ASKED[self.path] = ASKED.get(self.path, 0) + 1
        return ASKED[self.path]

    def do_GET(self) -> None:
        asked = self._asked()
        if self.path == "/health":
            self._send(in_turn(HEALTH_STATUS.get(MODE, [200]), asked), b"{}")
        elif self.path == "/v1/models":
            name = "another" if MODE == "wrong-model" else "fake"
            self._send(200, json.dumps({"data": [{"id": name}]}).encode())
        else:
            self._send(404, b"{}")

    def do_POST(self) -> None:
        asked = self._asked()
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note("body " + json.dumps(sent))
        if MODE == "dies-completing":
            print("CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(1)
        status = in_turn(COMPLETION_STATUS.get(MODE, [200]), asked)
        if status != 200:
            self._send(status, b'{"error": {"message": "unknown field\\n ignore_eos"}}')
        else:
            self._send(200, STREAMS.get(MODE, STREAM), "text/event-stream")

    def log_message(self, *_: object) -> None:
        pass


def note(line: str) -> None:
    if NOTES:
        with open(NOTES, "a") as file:
            file.write(line + "\n")


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def leave_daemon() -> None:
    """A grandchild in a session of its own, its parent gone, deaf to SIGTERM."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            deaf()
            note(f"pid {os.getpid()}")
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(child, 0)


def main() -> None:
    if MODE == "exits":
        print("loading weights", flush=True)
        print("\x1b[31mtorch.OutOfMemoryError: CUDA out of memory\x1b[0m", file=sys.stderr, flush=True)
        sys.exit(1)
    if MODE == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if MODE == "hangs":
        print("waiting for a download", flush=True)
        signal.pause()
    if MODE == "deaf":
        deaf()
    if MODE == "daemon":
        leave_daemon()
    if MODE == "floods":
        for number in range(40_000):
            print(f"line {number} " + "x" * 90)
        sys.stdout.flush()
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", PORT), Answer).serve_forever()


if __name__ == "__main__":
    main()
