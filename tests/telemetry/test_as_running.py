"""What a running engine tells of itself."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.scripted_server import scripted_server

from enginebench.telemetry.as_running import PATHS, flags_as_running, image_digest

PROPS = (Path(__file__).parent / "captures" / "llamacpp_props.json").read_text()


@contextmanager
def serving(pages: dict[str, str]) -> Iterator[str]:
    """Root URL of a server with these pages; everything else is 404."""

    def answer(connection: socket.socket, number: int) -> None:
        path = server.requests[number].split(b" ")[1].decode()
        status, body = ("200 OK", pages[path]) if path in pages else ("404 Not Found", "{}")
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    with scripted_server(answer) as server:
        yield server.url.removesuffix("/v1")


def test_llamacpps_own_answer_is_kept():
    with serving({"/props": PROPS}) as root:
        found = flags_as_running(root, {}, ())
    assert found is not None
    assert found.keys() == {"/props"}
    assert found["/props"]["total_slots"] == 16
    assert found["/props"]["default_generation_settings"]["n_ctx"] == 2048


def test_secrets_are_hidden_by_their_key_and_by_their_value():
    page = {"api_key": "K1", "args": ["--key", "hunter2"], "hf_token": None, "max_total_tokens": 5}
    with serving({"/server_info": json.dumps(page)}) as root:
        found = flags_as_running(root, {}, ("hunter2",))
    assert found == {
        "/server_info": {
            "api_key": "***",
            "args": ["--key", "***"],
            "hf_token": None,
            "max_total_tokens": 5,
        }
    }


def test_a_long_text_is_kept_as_its_hash():
    with serving({"/props": json.dumps({"chat_template": "x" * 301})}) as root:
        found = flags_as_running(root, {}, ())
    assert found is not None
    assert found["/props"]["chat_template"].startswith("sha256:")


def test_an_engine_that_tells_nothing_usable_has_none():
    pages = dict(zip(PATHS, ["", "<html>", "[1]", "3"], strict=True))
    with serving(pages) as root:
        assert flags_as_running(root, {}, ()) is None
    assert flags_as_running(root, {}, ()) is None


def docker(folder: Path, script: str, monkeypatch) -> None:
    path = folder / "docker"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_the_digest_of_an_image_is_what_docker_says(tmp_path, monkeypatch):
    docker(tmp_path, 'test "$5" = vllm:1 && echo vllm@sha256:abc', monkeypatch)
    assert image_digest("vllm:1") == "vllm@sha256:abc"


def test_without_a_daemon_the_digest_is_not_known(tmp_path, monkeypatch):
    docker(tmp_path, "echo no daemon >&2; exit 1", monkeypatch)
    assert image_digest("vllm:1") is None


def test_without_docker_the_digest_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert image_digest("vllm:1") is None
