"""The whole server over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from enginebench.mock import MockConfig, MockServer, SchedulerConfig, StepTime, Truth, running
from enginebench.mock.render import WORDS

MESSAGES = [{"role": "user", "content": "How fast are you?"}]
LONG = 100_000
"""Output tokens of an answer that will not end by itself while a test looks."""


def events(response: httpx.Response) -> list[Any]:
    assert response.text.endswith("data: [DONE]\n\n")
    return [json.loads(part.removeprefix("data: ")) for part in response.text.split("\n\n")[:-2]]


def stream(http: httpx.Client, path: str = "/v1/chat/completions", **fields: Any) -> httpx.Response:
    prompt = {"messages": MESSAGES} if "chat" in path else {"prompt": "Once"}
    return http.post(path, json={**prompt, "stream": True, **fields})


def truth_of(server: MockServer, request_id: str) -> Truth:
    [truth] = [one for one in server.truth() if one.id == request_id]
    return truth


def metric(http: httpx.Client, name: str) -> float:
    lines = http.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"vllm:{name}{{"))


def until(true: Callable[[], bool]) -> None:
    """Each look is a request to the server, so this does not spin."""
    for _ in range(20_000):
        if true():
            return
    raise AssertionError("it never came true")


def test_a_chat_stream_has_a_role_one_word_per_token_usage_and_done(http: httpx.Client) -> None:
    response = stream(http, max_tokens=5, stream_options={"include_usage": True})
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    role, *content, usage = events(response)
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert all(chunk["choices"][0]["delta"]["content"] in WORDS for chunk in content)
    assert [chunk["choices"][0]["finish_reason"] for chunk in content] == [None] * 4 + ["length"]
    assert usage["usage"] == {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    assert {chunk["id"] for chunk in (role, *content, usage)} == {response.headers["x-request-id"]}


def test_one_token_is_a_whole_stream(http: httpx.Client) -> None:
    _, only = events(stream(http, max_tokens=1))
    assert only["choices"][0]["finish_reason"] == "length"


def test_a_completion_stream_has_text_only(http: httpx.Client) -> None:
    chunks = events(stream(http, "/v1/completions", max_tokens=3))
    assert [chunk["choices"][0]["text"] in WORDS for chunk in chunks] == [True] * 3


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_the_same_prompt_gets_the_same_text_streamed_or_not(http: httpx.Client, path: str) -> None:
    prompt = {"messages": MESSAGES, "prompt": "Once"}
    whole = http.post(path, json={**prompt, "max_tokens": 7}).json()["choices"][0]
    parts = [chunk["choices"][0] for chunk in events(stream(http, path, max_tokens=7))]
    if "chat" in path:
        assert whole["message"]["content"] == "".join(part["delta"]["content"] for part in parts)
    else:
        assert whole["text"] == "".join(part["text"] for part in parts)


def test_the_clients_own_request_id_is_kept_if_it_is_harmless(http: httpx.Client) -> None:
    body = {"prompt": "a", "max_tokens": 1}
    kept = http.post("/v1/completions", json=body, headers={"x-request-id": "load-7:1"})
    assert kept.json()["id"] == kept.headers["x-request-id"] == "cmpl-load-7:1"
    replaced = http.post("/v1/completions", json=body, headers={"x-request-id": 'a"b'})
    assert '"' not in replaced.headers["x-request-id"]


def test_the_model_is_listed(http: httpx.Client) -> None:
    [card] = http.get("/v1/models").json()["data"]
    assert (card["id"], card["object"]) == ("tiny", "model")


def test_health_and_version(http: httpx.Client) -> None:
    assert http.get("/health").content == b""
    assert http.get("/version").json()["version"]


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/v1/nothing", 404, {"detail": "Not Found"}),
        ("POST", "/", 404, {"detail": "Not Found"}),
        ("GET", "/v1/chat/completions", 405, {"detail": "Method Not Allowed"}),
        ("POST", "/health", 405, {"detail": "Method Not Allowed"}),
    ],
)
def test_unknown_paths_and_methods(
    http: httpx.Client, method: str, path: str, status: int, body: Any
) -> None:
    response = http.request(method, path)
    assert (response.status_code, response.json()) == (status, body)


@pytest.mark.parametrize(
    ("content", "status", "kind"),
    [
        (b"{", 400, "Bad Request"),
        (b'{"model":"tiny"}', 400, "Bad Request"),
        (b'{"messages":[{"role":"user","content":"x"}],"max_tokens":0}', 400, "BadRequestError"),
        (b'{"messages":[{"role":"user","content":"x"}],"model":"big"}', 404, "NotFoundError"),
    ],
)
def test_refusals_have_vllms_error_object_and_keep_the_connection(
    http: httpx.Client, content: bytes, status: int, kind: str
) -> None:
    response = http.post("/v1/chat/completions", content=content)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["type"]) == (status, status, kind)
    assert "connection" not in response.headers


def test_a_refused_upload_gets_its_413_although_it_was_still_being_sent(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", content=b"x" * (17 * 1024 * 1024))
    assert response.status_code == 413
    assert http.get("/health").status_code == 200


def test_a_stream_for_http_1_0_is_refused(server: MockServer) -> None:
    body = json.dumps({"prompt": "a", "stream": True}).encode()
    head = b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(head + body)
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 505 ")


def test_tokens_and_requests_are_counted_under_vllms_names(http: httpx.Client) -> None:
    names = ("prompt_tokens_total", "generation_tokens_total", "request_success_total")
    before = [metric(http, name) for name in names]
    assert stream(http, max_tokens=6).status_code == 200
    # The last token is on the wire a moment before its step is accounted for.
    until(lambda: [metric(http, name) for name in names] == [before[0] + 9, before[1] + 6, before[2] + 1])


def test_a_client_that_leaves_frees_its_sequence(server: MockServer, http: httpx.Client) -> None:
    with http.stream(
        "POST", "/v1/chat/completions", json={"messages": MESSAGES, "stream": True, "max_tokens": LONG}
    ) as response:
        request_id = response.headers["x-request-id"]
        body = response.iter_bytes()  # httpx leaves when this is collected
        next(body)
        until(lambda: metric(http, "num_requests_running") == 1)
    until(lambda: metric(http, "num_requests_running") == 0)
    truth = truth_of(server, request_id)
    assert truth.ending == "client_left"
    assert 1 <= truth.kind.count("content") < LONG


def test_a_client_that_leaves_before_its_whole_answer_frees_its_sequence(
    server: MockServer, http: httpx.Client
) -> None:
    body = json.dumps({"messages": MESSAGES, "max_tokens": LONG}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        until(lambda: metric(http, "num_requests_running") == 1)
    until(lambda: metric(http, "num_requests_running") == 0)


def test_truth_has_one_entry_per_event_in_order_with_both_times(
    server: MockServer, http: httpx.Client
) -> None:
    response = stream(http, max_tokens=3, stream_options={"include_usage": True})
    truth = truth_of(server, response.headers["x-request-id"])
    assert truth.kind == ["role", "content", "content", "content", "usage", "done"]
    assert (truth.endpoint, truth.stream, truth.ending) == ("chat", True, "complete")
    assert (truth.prompt_tokens, truth.output_tokens) == (9, 3)
    assert truth.sent_ns == sorted(truth.sent_ns)
    assert len(truth.sent_ns) == len(truth.intended_ns) == 6
    # Role and first word belong to one step, as do the last word, usage and the end.
    first, second, last = truth.intended_ns[1:4]
    assert truth.intended_ns == [first, first, second, last, last, last]
    assert truth.arrived_ns < first
    assert all(sent >= intended for sent, intended in zip(truth.sent_ns, truth.intended_ns, strict=True))


def test_truth_of_a_whole_answer_is_one_entry(server: MockServer, http: httpx.Client) -> None:
    response = http.post("/v1/completions", json={"prompt": "a", "max_tokens": 4})
    truth = truth_of(server, response.headers["x-request-id"])
    assert (truth.kind, truth.stream, len(truth.sent_ns)) == (["content"], False, 1)


def test_chunks_queue_when_the_client_does_not_read_and_the_truth_says_so() -> None:
    # About 20 MB, because every chunk names the model: more than the kernel holds for this reader.
    n_tokens, model = 1000, "m" * 20_000
    body = json.dumps({"prompt": "a", "max_tokens": n_tokens, "stream": True}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nX-Request-Id: sleeper\r\nContent-Length: %d\r\n\r\n" % len(body)
    at_once = SchedulerConfig(step_time=StepTime(0, 0, 0, 0))
    with (
        running(MockConfig(model=model, scheduler=at_once)) as server,
        httpx.Client(base_url=server.root_url) as http,
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(head + body)
            until(lambda: metric(http, "request_success_total") == 1)
        [truth] = server.truth()
    assert (truth.ending, truth.kind.count("content")) == ("complete", n_tokens)
    assert 0 < truth.n_queued < n_tokens
