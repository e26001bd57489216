"""The fixed prompts, asked of the mock and of servers that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from enginebench.bench.agreement import OUTPUT_TOKENS, PROMPTS, answers, request_fields
from enginebench.bench.targets import OpenTarget
from enginebench.model.client import Endpoint
from enginebench.model.request import Dialect, Sampling
from enginebench.model.scenario import Target

FRAMES = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Rhine"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
    b"data: [DONE]\n\n"
)


@contextmanager
def serving(*responses: tuple[int, bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers in turn, the last one for good; and the bodies it got."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = responses[min(len(bodies), len(responses)) - 1]
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def opened(url: str, dialect: Dialect | None = None) -> OpenTarget:
    target = Target(name="a", url=url, model="m")
    return OpenTarget(target, Endpoint(url), "m", dialect or Dialect(), {}, ())


def test_every_prompt_is_asked_once_and_in_order() -> None:
    with serving((200, FRAMES)) as (url, bodies):
        found = answers(opened(url))

    assert len(bodies) == len(PROMPTS) == len({one["prompt_sha256"] for one in found}) == 20
    assert {(one["output"], one["output_tokens"]) for one in found} == {("Rhine", 2)}
    assert all(b'"temperature":0.0' in body for body in bodies)
    assert all(f'"max_tokens":{OUTPUT_TOKENS}'.encode() in body for body in bodies)


def test_after_a_failure_no_more_is_asked() -> None:
    with serving((200, FRAMES), (500, b"out of memory")) as (url, bodies):
        found = answers(opened(url))

    assert len(bodies) == 2
    assert [one["output"] for one in found] == ["Rhine", None]


def test_a_server_that_is_gone_gives_no_answer_and_no_error() -> None:
    with serving((200, FRAMES)) as (url, _):
        pass

    assert [one["output"] for one in answers(opened(url))] == [None]


def test_the_fields_beside_the_prompt_are_what_the_dialect_lets_through() -> None:
    plain = opened("http://127.0.0.1:9/v1")
    strict = opened("http://127.0.0.1:9/v1", Dialect(temperature=False, extra_body={"cache_prompt": False}))

    assert request_fields(plain, Sampling()) == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
    }
    assert "temperature" not in request_fields(strict, Sampling())
    assert request_fields(strict, Sampling())["cache_prompt"] is False
