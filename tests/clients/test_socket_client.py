"""What the measuring client does with servers that behave, and with servers that do not."""

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.fakes.scripted_server import (
    OK_HEAD,
    ScriptedServer,
    good_answer,
    reset,
    scripted_server,
    text_event,
)

from enginebench.clients.poller import new_event_loop
from enginebench.clients.socket import SocketClient
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture
from enginebench.model.client import Call, Endpoint
from enginebench.model.scenario import Timeouts
from enginebench.units import NS_PER_MS, NS_PER_S

PATIENT = Timeouts(first_token_ns=20 * NS_PER_S, idle_ns=20 * NS_PER_S, total_ns=60 * NS_PER_S)


def in_loop(work: Callable[[], Any]) -> Any:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work())


def call(seq: int = 0, body: bytes = b"{}") -> Call:
    return Call(seq, "measure", monotonic_ns(), body)


def fetch(
    server: ScriptedServer, n: int = 1, timeouts: Timeouts = PATIENT, body: bytes = b"{}"
) -> list[Capture]:
    """`n` calls one after another with one client."""

    async def work() -> list[Capture]:
        client = SocketClient(Endpoint(server.url + "/completions", timeouts=timeouts))
        captures = [await client.send(call(i, body)) for i in range(n)]
        await client.close()
        return captures

    return in_loop(work)


def body_of(capture: Capture) -> bytes:
    return b"".join(read.body for read in capture.reads)


def well(connection: socket.socket, number: int) -> None:
    connection.sendall(good_answer())


def test_a_good_stream_is_complete_and_its_times_are_in_order():
    with scripted_server(well) as server:
        (capture,) = fetch(server)
    assert (capture.ending, capture.status, capture.http_version) == ("complete", 200, "1.1")
    assert capture.stamp_source == "socket"
    assert body_of(capture).endswith(b"data: [DONE]\n\n")
    times = [
        capture.intended_ns, capture.started_ns, capture.connected_ns, capture.sent_ns,
        capture.headers_ns, capture.reads[-1].arrived_ns, capture.done_ns, capture.reads[-1].read_ns,
    ]  # fmt: skip
    assert times == sorted(times)


def test_connections_are_kept_alive_and_only_the_first_call_connects():
    with scripted_server(well) as server:
        captures = fetch(server, n=3)
        assert server.n_connections == 1
    assert [c.connection_reused for c in captures] == [False, True, True]
    assert [c.connected_ns is not None for c in captures] == [True, False, False]


def test_connection_close_is_obeyed():
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(good_answer().replace(b"\r\nContent", b"\r\nConnection: close\r\nContent", 1))

    with scripted_server(answer) as server:
        captures = fetch(server, n=2)
        assert server.n_connections == 2
    assert [c.ending for c in captures] == ["complete", "complete"]


def test_ipv6():
    with scripted_server(well, host="::1") as server:
        (capture,) = fetch(server)
    assert capture.ending == "complete"


def test_the_host_header_names_the_port_and_no_encoding_is_accepted():
    with scripted_server(well) as server:
        fetch(server)
        head = server.requests[0].partition(b"\r\n\r\n")[0].decode().lower()
        assert f"host: 127.0.0.1:{server.port}" in head
    assert head.startswith("post /v1/completions http/1.1\r\n")
    assert "accept-encoding: identity" in head


def test_a_prompt_larger_than_the_socket_buffer_is_sent_whole():
    body = b'{"prompt": "' + b"word " * 2_000_000 + b'"}'
    with scripted_server(well) as server:
        (capture,) = fetch(server, body=body)
        assert server.requests[0].endswith(body)
    assert capture.ending == "complete"
    assert capture.sent_ns is not None


def test_a_kept_connection_found_dead_is_replaced_once_and_said_so():
    """The server reads the second request and resets: what a keep-alive race looks like."""
    dead = threading.Event()

    def answer(connection: socket.socket, number: int) -> None:
        if number == 1 and not dead.is_set():
            dead.set()
            reset(connection)
        else:
            connection.sendall(good_answer())

    with scripted_server(answer) as server:
        first, second = fetch(server, n=2)
    assert (first.retried, second.retried) == (False, True)
    assert (second.ending, second.connection_reused) == ("complete", False)
    assert second.connected_ns is not None


def test_a_new_connection_that_dies_is_not_retried():
    with scripted_server(lambda connection, number: reset(connection)) as server:
        (capture,) = fetch(server)
        assert len(server.requests) == 1
    assert (capture.ending, capture.retried) == ("reset", False)


def test_a_reset_in_mid_stream_keeps_what_came_before():
    gone = threading.Event()

    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(OK_HEAD + text_event("a") + text_event("b"))
        gone.wait(10)
        reset(connection)

    async def work() -> Capture:
        client = SocketClient(Endpoint(server.url + "/completions", timeouts=PATIENT))
        sending = asyncio.create_task(client.send(call()))
        while not any(capture.reads for capture in client.in_flight()):
            await asyncio.sleep(0)
        gone.set()
        capture = await sending
        await client.close()
        return capture

    with scripted_server(answer) as server:
        capture = in_loop(work)
    assert capture.ending == "reset"
    assert b'"a"' in body_of(capture)


def test_an_end_before_the_terminator_is_not_complete():
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(OK_HEAD + text_event("a", "stop"))
        connection.shutdown(socket.SHUT_WR)

    with scripted_server(answer) as server:
        (capture,) = fetch(server)
    assert capture.ending == "closed"


def test_a_body_until_close_is_complete_at_the_close():
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n")
        connection.shutdown(socket.SHUT_WR)

    with scripted_server(answer) as server:
        (capture,) = fetch(server)
    assert (capture.ending, body_of(capture)) == ("complete", b"data: x\n\n")


@pytest.mark.parametrize("garbage", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x01\x00\x02\x02\x16"])
def test_something_else_than_http_is_named(garbage):
    with scripted_server(lambda connection, number: connection.sendall(garbage)) as server:
        (capture,) = fetch(server)
    assert capture.ending == "bad_http"


def silent_after(payload: bytes) -> Callable[[socket.socket, int], None]:
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(payload)

    return answer


PING = OK_HEAD + b"3\r\n:\n\n\r\n"


@pytest.mark.parametrize(
    ("payload", "ending"),
    [
        (b"", "first_token_timeout"),
        (OK_HEAD, "first_token_timeout"),
        (PING, "first_token_timeout"),
        (OK_HEAD + text_event(""), "first_token_timeout"),
        (OK_HEAD + text_event("a"), "idle_timeout"),
    ],
    ids=["nothing", "headers", "ping", "empty delta", "one token"],
)
def test_silence_is_timed_from_the_last_output(payload, ending):
    timeouts = Timeouts(first_token_ns=150 * NS_PER_MS, idle_ns=100 * NS_PER_MS, total_ns=30 * NS_PER_S)
    with scripted_server(silent_after(payload)) as server:
        (capture,) = fetch(server, timeouts=timeouts)
    assert capture.ending == ending


def test_a_stream_that_never_ends_meets_the_total_timeout():
    stop = threading.Event()

    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(OK_HEAD)
        while not stop.wait(0.005):
            connection.sendall(text_event("more "))

    timeouts = Timeouts(first_token_ns=20 * NS_PER_S, idle_ns=20 * NS_PER_S, total_ns=200 * NS_PER_MS)
    with scripted_server(answer) as server:
        (capture,) = fetch(server, timeouts=timeouts)
        stop.set()
    assert capture.ending == "total_timeout"
    assert capture.reads


def test_a_refused_connection_is_a_capture_not_an_exception():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    (capture,) = fetch(ScriptedServer("127.0.0.1", port))
    assert capture.ending == "connect_failed"
    assert "refused" in (capture.ending_detail or "").lower()
    assert capture.sent_ns is None


def test_a_name_that_does_not_resolve_is_a_capture_not_an_exception():
    (capture,) = fetch(ScriptedServer("no-such-host.invalid", 80))
    assert capture.ending == "connect_failed"


def test_abort_ends_what_is_in_flight_as_cancelled_and_frees_the_connections():
    async def work() -> list[Capture]:
        client = SocketClient(Endpoint(server.url + "/completions", timeouts=PATIENT))
        sending = [asyncio.create_task(client.send(call(i))) for i in range(5)]
        while sum(bool(c.reads) for c in client.in_flight()) < 5:
            await asyncio.sleep(0)
        client.abort()
        captures = await asyncio.gather(*sending)
        assert not client.in_flight()
        await client.close()
        return captures

    with scripted_server(silent_after(OK_HEAD + text_event("a"))) as server:
        captures = in_loop(work)
    assert {c.ending for c in captures} == {"cancelled"}
    assert all(c.reads for c in captures)


def test_bytes_between_two_answers_close_the_connection():
    def answer(connection: socket.socket, number: int) -> None:
        connection.sendall(good_answer() + (b"HTTP/1.1 500 Unasked\r\n\r\n" if number == 0 else b""))

    with scripted_server(answer) as server:
        captures = fetch(server, n=2)
        assert server.n_connections == 2
    assert [c.ending for c in captures] == ["complete", "complete"]
    assert not captures[1].connection_reused


def test_no_chunk_is_attributed_before_its_socket_was_last_known_empty():
    with scripted_server(well) as server:
        captures = fetch(server, n=5)
    for capture in captures:
        for read in capture.reads:
            assert read.arrived_ns is not None
            assert read.quiet_ns <= read.arrived_ns + NS_PER_MS
            assert read.arrived_ns <= read.read_ns + NS_PER_MS


def test_the_chunk_counter_counts_every_body_part_once():
    async def work() -> int:
        client = SocketClient(Endpoint(server.url + "/completions", timeouts=PATIENT))
        await asyncio.gather(*(client.send(call(i)) for i in range(4)))
        counted = client.chunks_read
        await client.close()
        return counted

    with scripted_server(well) as server:
        assert in_loop(work) == 4 * 4


def test_a_reply_that_comes_before_the_whole_request_was_sent_is_read():
    """A server may refuse a body by its Content-Length and not read on."""
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(refusal)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
        connection.close()

    thread = threading.Thread(target=refuse)
    thread.start()
    (capture,) = fetch(ScriptedServer("127.0.0.1", listener.getsockname()[1]), body=b"x" * 30_000_000)
    thread.join(10)
    listener.close()
    assert (capture.status, capture.ending) == (413, "complete")
