"""A streaming server that keeps a timetable and knows its own times: the truth for client tests.

Run as a process of its own: `python timetable_server.py PLAN LOG`. PLAN (JSON) is a list of streams,
each a list of [offset_ms, n_events]: at that offset after all streams were asked for, n_events SSE
events go out in one send. It prints its port. When every stream is done it writes LOG (JSON): per
stream and send, the monotonic clock before and after the call.

Streams are told apart by the integer that the request's prompt ends with.
"""

import heapq
import json
import re
import select
import socket
import sys
import time
from pathlib import Path

LEAST_GAP_NS = 1_200_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def http_chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event(stream: int, number: int, last: bool) -> bytes:
    finish = "stop" if last else None
    choice = {"index": 0, "text": f"s{stream}e{number} ", "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def read_request(connection: socket.socket) -> int:
    received = b""
    while True:
        received += connection.recv(65536)
        head, separator, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if separator and length and len(body) >= int(length[1]):
            return int(re.findall(rb"\d+", json.loads(body)["prompt"].encode())[-1])


def gather(listener: socket.socket, n_streams: int) -> dict[int, socket.socket]:
    connections: dict[int, socket.socket] = {}
    while len(connections) < n_streams:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections[read_request(connection)] = connection
    return connections


def send(
    connection: socket.socket, stream: int, n_sent: int, sends: list[list[int]], i: int
) -> tuple[int, int]:
    """Sends the events of send `i`; the clock before and after the call."""
    numbers = range(n_sent, n_sent + sends[i][1])
    is_last_send = i == len(sends) - 1
    payload = b"".join(http_chunk(event(stream, n, is_last_send and n == numbers[-1])) for n in numbers)
    before_ns = time.monotonic_ns()
    connection.send(payload)
    return before_ns, time.monotonic_ns()


def main(plan_path: str, log_path: str) -> None:
    plan = json.loads(Path(plan_path).read_text())
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    connections = gather(listener, len(plan))
    for connection in connections.values():
        connection.sendall(HEAD)
    start_ns = time.monotonic_ns() + 50_000_000
    due = [(start_ns + int(sends[0][0] * 1e6), stream, 0) for stream, sends in enumerate(plan)]
    heapq.heapify(due)
    log: list[list[tuple[int, int]]] = [[] for _ in plan]
    while due:
        at_ns, stream, i = heapq.heappop(due)
        select.select([], [], [], max(0, at_ns - time.monotonic_ns()) / 1e9)
        times = send(connections[stream], stream, len(log[stream]), plan[stream], i)
        log[stream] += [times] * plan[stream][i][1]
        if i + 1 < len(plan[stream]):
            # A send that came late pushes the next one, so that no two are closer than planned for.
            next_ns = max(start_ns + int(plan[stream][i + 1][0] * 1e6), times[1] + LEAST_GAP_NS)
            heapq.heappush(due, (next_ns, stream, i + 1))
    for connection in connections.values():
        connection.sendall(http_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
    Path(log_path).write_text(json.dumps(log))


if __name__ == "__main__":
    main(*sys.argv[1:3])
