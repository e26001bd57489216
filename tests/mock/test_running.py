from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from enginebench.errors import EngineExited, UserError
from enginebench.mock import MockConfig, MockServer, read_truth, running


def complete(server: MockServer) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=10) as http:
        return http.post(
            f"{server.base_url}/completions", json={"prompt": "a", "max_tokens": 2, "stream": True}
        )


def test_a_server_serves_while_the_block_lasts_and_is_gone_after_it() -> None:
    with running() as server:
        assert complete(server).status_code == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_the_truth_file_is_complete_after_the_block(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    with running(MockConfig(truth_file=str(path))) as server:
        request_id = complete(server).headers["x-request-id"]
        asked = server.truth()
    assert [one.id for one in read_truth(path)] == [request_id]
    assert read_truth(path) == asked


def test_a_request_that_is_cut_off_by_the_end_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    body = b'{"prompt":"a","max_tokens":100000,"stream":true}'
    head = b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.socket() as raw:
        with running(MockConfig(truth_file=str(path))) as server:
            raw.connect(("127.0.0.1", server.port))
            raw.sendall(head + body)
            assert raw.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert [one.ending for one in read_truth(path)] == ["stopped"]
        while raw.recv(65536):
            pass


def test_a_test_that_fails_inside_the_block_still_stops_the_server() -> None:
    with pytest.raises(ZeroDivisionError), running() as server:
        raise ZeroDivisionError
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_a_taken_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with (
            pytest.raises(EngineExited, match=f"cannot listen on 127.0.0.1 port {port}"),
            running(MockConfig(port=port)),
        ):
            pass


def test_a_server_that_someone_killed_does_not_fail_the_block() -> None:
    with running() as server:
        os.kill(server.pid, signal.SIGKILL)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_an_impossible_port_is_refused_before_anything_starts(port: int) -> None:
    with pytest.raises(UserError, match="port must be"):
        MockConfig(port=port)


def test_starting_needs_no_heavy_import() -> None:
    heavy = ("numpy", "pandas", "typer", "pydantic", "httpx")
    code = f"import sys, enginebench.mock.server; print([m for m in {heavy} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert said.strip() == "[]"
