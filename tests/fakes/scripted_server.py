"""A server that answers each connection with a given script of steps, in threads of the test's process."""

import contextlib
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

OK_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def text_event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": finish}
    return chunk(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")


def good_answer(n_events: int = 3) -> bytes:
    events = [text_event(f"word{i} ", "stop" if i == n_events - 1 else None) for i in range(n_events)]
    return OK_HEAD + b"".join(events) + chunk(b"data: [DONE]\n\n") + END


def read_request(connection: socket.socket) -> bytes | None:
    """One whole request; None when the client closed instead."""
    received = b""
    while True:
        got = connection.recv(65536)
        if not got:
            return None
        received += got
        head, separator, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if separator and len(body) >= (int(length[1]) if length else 0):
            return received


def reset(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@dataclass
class ScriptedServer:
    host: str
    port: int
    requests: list[bytes] = field(default_factory=list)
    n_connections: int = 0

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"


Answer = Callable[[socket.socket, int], None]
"""Answers one request on its connection; the integer counts requests over all connections."""


@contextmanager
def scripted_server(answer: Answer, host: str = "127.0.0.1") -> Iterator[ScriptedServer]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family, backlog=512)
    server = ScriptedServer(host, listener.getsockname()[1])
    open_connections: list[socket.socket] = []
    lock = threading.Lock()

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (request := read_request(connection)) is not None:
                with lock:
                    server.requests.append(request)
                    number = len(server.requests) - 1
                answer(connection, number)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server.n_connections += 1
                open_connections.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        # shutdown, not close: a thread blocked in accept or recv holds the descriptor.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()
        for connection in open_connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
