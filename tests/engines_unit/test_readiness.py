"""What counts as ready, and what counts as an endpoint that can be attached to."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
from tests.engines_unit.fake_engine import FakeServer, serving

from enginebench.clock import monotonic_ns
from enginebench.engines.readiness import (
    NotReadyInTime,
    Probe,
    Ready,
    check_endpoint,
    served_models,
    wait_until_ready,
)
from enginebench.errors import TargetError
from enginebench.model.request import Dialect, EndpointKind
from enginebench.model.scenario import Readiness
from enginebench.units import NS_PER_MS, NS_PER_S


def no_check() -> None:
    pass


def probe_of(server: FakeServer, endpoint: EndpointKind = "chat") -> Probe:
    return Probe("fake", server.base_url, "/v1", "fake", endpoint, Readiness(), Dialect())


def ask(probe: Probe, patience_ns: int = 30 * NS_PER_S) -> Ready:
    return wait_until_ready(probe, monotonic_ns() + patience_ns, no_check)


def test_questions_are_asked_in_order_and_each_until_it_is_answered() -> None:
    with serving("loading") as server:
        ready = ask(probe_of(server))
    assert list(server.asked.items()) == [
        ("GET /health", 3),
        ("GET /v1/models", 1),
        ("POST /v1/chat/completions", 1),
    ]
    assert ready.first_token_ns is not None
    assert ready.completed_ns is not None
    assert ready.healthy_ns <= ready.first_token_ns <= ready.completed_ns


def test_a_healthy_engine_that_cannot_generate_yet_is_asked_again() -> None:
    with serving("early") as server:  # 404, then 500, then a stream
        ask(probe_of(server))
    assert server.asked["POST /v1/chat/completions"] == 3


@pytest.mark.parametrize("mode", ["ok", "no-text", "no-done", "aliased", "tagged"])
def test_a_stream_with_a_finish_reason_is_a_completion(mode: str) -> None:
    with serving(mode) as server:
        assert ask(probe_of(server)).completed_ns is not None


@pytest.mark.parametrize(
    ("mode", "last_answer"),
    [
        ("unhealthy", "503 from http://127.0.0.1:{port}/health"),
        ("wrong-model", "http://127.0.0.1:{port}/v1/models lists another, not fake"),
        ("pinned", "http://127.0.0.1:{port}/v1/models lists nothing, not fake"),
        (
            "cannot-complete",
            '500 to a completion: {"error": {"message": "unknown field\\n ignore_eos"}}',
        ),
        ("error-in-stream", "a completion that failed: engine is dead"),
        ("unfinished", "a completion that failed: no finish reason"),
        ("not-json", "a completion that failed: <html> [31m"),
        ("array", "a completion that failed: [1]"),
    ],
)
def test_an_engine_that_never_gets_there_is_given_up_with_its_last_answer(
    mode: str, last_answer: str
) -> None:
    with serving(mode) as server, pytest.raises(NotReadyInTime) as caught:
        ask(probe_of(server), 300 * NS_PER_MS)
    assert caught.value.last_answer == last_answer.replace("{port}", str(server.server_port))


def test_a_stream_that_never_ends_is_given_up() -> None:
    with serving("endless") as server, pytest.raises(NotReadyInTime, match="a stream that does not end"):
        ask(probe_of(server), 0)


@pytest.mark.parametrize(("mode", "status"), [("refuses", 422), ("locked", 401)])
def test_a_completion_refused_for_good_is_not_asked_again(mode: str, status: int) -> None:
    with (
        serving(mode) as server,
        pytest.raises(TargetError, match=rf"^fake answers {status} to a completion: "),
    ):
        ask(replace(probe_of(server), readiness=Readiness(models=False)))
    assert server.asked["POST /v1/chat/completions"] == 1


def test_a_launcher_may_ask_for_less() -> None:
    with serving("unhealthy") as server:
        readiness = Readiness(health=None, models=True, completion=False)
        ready = ask(replace(probe_of(server), readiness=readiness))
    assert list(server.asked) == ["GET /v1/models"]
    assert ready.first_token_ns is None
    assert ready.completed_ns is None


def test_the_completion_speaks_the_dialect_of_the_endpoint_asked_for() -> None:
    dialect = Dialect(stream_options=False, ignore_eos=True, extra_body={"cache_prompt": False})
    with serving("ok") as server:
        ask(replace(probe_of(server, "completions"), dialect=dialect, headers={"Authorization": "Bearer k"}))
    assert server.asked["POST /v1/completions"] == 1
    assert server.bodies == [
        {
            "model": "fake",
            "prompt": "Say hello.",
            "max_tokens": 4,
            "stream": True,
            "temperature": 0.0,
            "ignore_eos": True,
            "cache_prompt": False,
        }
    ]
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer k"}


def test_the_check_is_made_before_any_question_and_stops_the_asking() -> None:
    class Dead(Exception):
        pass

    def check() -> None:
        raise Dead

    with serving("ok") as server, pytest.raises(Dead):
        wait_until_ready(probe_of(server), monotonic_ns() + NS_PER_S, check)
    assert server.asked.total() == 0


def test_attaching_tells_what_is_served_and_sends_no_request() -> None:
    with serving("ok") as server:
        assert check_endpoint(server.base_url, "fake", {}) == ["fake"]
        assert check_endpoint(server.base_url + "/", None, {}) == ["fake"]
    assert server.asked == {"GET /v1/models": 2}


@pytest.mark.parametrize("mode", ["no-models", "no-get", "not-built", "pinned", "odd-models"])
def test_attaching_to_a_server_without_a_list_of_models_is_fine(mode: str) -> None:
    with serving(mode) as server:
        assert check_endpoint(server.base_url, "fake", {}) == []


WITH_KEY = {"Authorization": "Bearer k"}
TEN_MODELS = ", ".join(f"model-{n}" for n in range(10))


@pytest.mark.parametrize(
    ("mode", "headers", "words"),
    [
        (
            "locked",
            {},
            "answers 401: it wants an API key; "
            "name the environment variable that holds it with `api_key_env`",
        ),
        ("locked", WITH_KEY, "answers 401: it refuses the API key; check OUR_KEY"),
        ("forbidden", WITH_KEY, "answers 403: it refuses the API key; check OUR_KEY"),
        ("broken", {}, "answers 502 when asked for its models; is it still loading?"),
        ("moved", {}, "redirects to https://elsewhere.example/v1/models; use that URL"),
        ("wrong-model", {}, "does not serve 'fake'; it serves another"),
        ("many-models", {}, f"does not serve 'fake'; it serves {TEN_MODELS} and 4 more"),
    ],
)
def test_attaching_to_the_wrong_thing_is_one_line_that_says_what_to_do(
    mode: str, headers: dict[str, str], words: str
) -> None:
    with serving(mode) as server, pytest.raises(TargetError) as caught:
        check_endpoint(server.base_url, "fake", headers, "OUR_KEY")
    assert str(caught.value) == f"{server.base_url} {words}"


def test_attaching_to_nothing_says_that_nothing_is_there() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # bound, not listening
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
        with pytest.raises(TargetError) as caught:
            check_endpoint(url, "m", {})
    assert str(caught.value) == f"cannot reach {url}: connection refused; is the server running?"


def test_attaching_to_something_that_does_not_speak_http_is_no_traceback() -> None:
    with pytest.raises(TargetError, match="cannot reach"):
        check_endpoint("no-scheme/v1", "m", {})


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"data": [{"id": "a"}, {"id": "b", "aliases": ["c", "a"]}]}', ["a", "b", "c"]),
        (b'{"data": []}', []),
        (b'{"data": {}}', []),
        (b'{"data": [3]}', []),
        (b"[]", []),
        (b"\xff", []),
    ],
)
def test_lists_of_models_of_any_form(body: bytes, names: list[str]) -> None:
    assert served_models(body) == names
