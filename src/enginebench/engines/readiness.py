"""When an engine is ready: it is healthy, it lists the model, and it has completed a request.

An endpoint that was there before us is only looked at (`check_endpoint`): no request is sent to it
that would cost somebody money or count as load.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from enginebench.clock import monotonic_ns
from enginebench.errors import TargetError
from enginebench.model.capture import Capture, Read
from enginebench.model.request import ENDPOINT_PATHS, Dialect, EndpointKind, Request, Sampling
from enginebench.model.scenario import Readiness
from enginebench.units import NS_PER_S
from enginebench.wire.decode import FirstOutput, decode
from enginebench.wire.encode import encode_body
from enginebench.wire.redact import redact

_REQUEST = Request(
    seq=0,
    prompt="Say hello.",
    prompt_sha256="",
    asked_prompt_tokens=3,
    asked_output_tokens=4,
)
_QUICK_TIMEOUT_S = 5.0
"""For /health and /v1/models: some engines hold these back while they load; we ask again."""
_ATTACH_TIMEOUT_S = 10.0
_SHOWN_MODELS = 10
_PAUSE_FIRST_S, _PAUSE_MOST_S, _PAUSE_GROWTH = 0.02, 0.5, 1.5
_FINAL_STATUSES = frozenset({400, 401, 403, 405, 413, 415, 422})
"""Answers to a completion that waiting does not change."""
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class Probe:
    """Whom to ask, and for what."""

    name: str
    base_url: str
    """With its version path: http://127.0.0.1:8000/v1."""
    base_path: str
    """The part of `base_url` that is below the server's root; /health stands beside it."""
    model: str
    endpoint: EndpointKind
    readiness: Readiness
    dialect: Dialect
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    """To be hidden in whatever is quoted of the engine's answers."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Monotonic ns at which the engine got that far; None for what was not asked of it."""

    healthy_ns: int
    first_token_ns: int | None
    completed_ns: int | None


class NotReadyInTime(Exception):
    """The deadline has passed; `last_answer` says in words what the engine said last."""

    def __init__(self, last_answer: str) -> None:
        self.last_answer = last_answer
        super().__init__(last_answer)


class _NotYet(Exception):
    """What the engine answered instead, in words."""


class _Endless(_NotYet):
    """The answer had not ended at the deadline: how an earlier one ended says more, if there was one."""


def wait_until_ready(probe: Probe, deadline_ns: int, check: Callable[[], None]) -> Ready:
    """Ask until the engine is ready. `check` is called between any two questions and raises when
    asking on is useless. Raises NotReadyInTime, and TargetError when a completion is refused for
    good (400, 401, 422, ...)."""

    def until(ask: Callable[[httpx.Client], _Answer]) -> _Answer:
        return _ask_until(lambda: ask(client), deadline_ns, check)

    readiness = probe.readiness
    with _client(probe.headers) as client:
        if readiness.health is not None:
            health_url = probe.base_url.removesuffix(probe.base_path) + readiness.health
            until(lambda client: _be_healthy(client, health_url))
        if readiness.models:
            until(lambda client: _list_model(client, probe))
        healthy_ns = monotonic_ns()
        if not readiness.completion:
            return Ready(healthy_ns, None, None)
        first_token_ns = until(lambda client: _complete(client, probe, deadline_ns))
        return Ready(healthy_ns, first_token_ns, monotonic_ns())


def _client(
    headers: Mapping[str, str], timeout_s: float = _QUICK_TIMEOUT_S, is_tls: bool = False
) -> httpx.Client:
    # Over plain HTTP there is nothing to verify, and reading the certificates would cost 50 ms.
    return httpx.Client(trust_env=False, verify=is_tls, timeout=timeout_s, headers=dict(headers))


_Answer = TypeVar("_Answer")


def _ask_until(ask: Callable[[], _Answer], deadline_ns: int, check: Callable[[], None]) -> _Answer:
    pause_s, last_answer = _PAUSE_FIRST_S, None
    while True:
        check()
        try:
            return ask()
        except (_NotYet, httpx.HTTPError) as error:
            # A refused connection may mean that the engine has just died: say that instead.
            check()
            if last_answer is None or not isinstance(error, _Endless):
                last_answer = _in_words(error)
            if monotonic_ns() + pause_s * NS_PER_S > deadline_ns:
                raise NotReadyInTime(last_answer) from error
            time.sleep(pause_s)
            pause_s = min(pause_s * _PAUSE_GROWTH, _PAUSE_MOST_S)


def _be_healthy(client: httpx.Client, url: str) -> None:
    response = client.get(url)
    if response.status_code != 200:
        raise _NotYet(f"{response.status_code} from {url}")


def _list_model(client: httpx.Client, probe: Probe) -> None:
    url = f"{probe.base_url}/models"
    response = client.get(url)
    if response.status_code != 200:
        raise _NotYet(f"{response.status_code} from {url}")
    served = served_models(response.content)
    if not _is_among(probe.model, served):
        raise _NotYet(f"{url} lists {', '.join(served) or 'nothing'}, not {probe.model}")


def check_endpoint(
    base_url: str, model: str | None, headers: Mapping[str, str], key_name: str | None = None
) -> list[str]:
    """Ask an endpoint for its models: the ids it serves, empty where it has no such list (404, 405,
    501). `key_name` is what the key came from, for the error message. Raises TargetError when it
    cannot be reached, refuses the key, or does not serve `model`."""
    url = f"{base_url.rstrip('/')}/models"
    try:
        with _client(headers, _ATTACH_TIMEOUT_S, is_tls=url.startswith("https:")) as client:
            response = client.get(url)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise TargetError(f"cannot reach {base_url}: {_in_words(error)}; is the server running?") from error
    status = response.status_code
    if status in (401, 403):
        raise TargetError(f"{base_url} answers {status}: {_about_key(headers, key_name)}")
    if 300 <= status < 400:
        raise TargetError(
            f"{base_url} redirects to {shown(response.headers.get('location', ''))}; use that URL"
        )
    if status >= 500 and status != 501:
        raise TargetError(f"{base_url} answers {status} when asked for its models; is it still loading?")
    served = served_models(response.content) if status == 200 else []
    if model and served and not _is_among(model, served):
        more = f" and {len(served) - _SHOWN_MODELS} more" if len(served) > _SHOWN_MODELS else ""
        names = shown(", ".join(served[:_SHOWN_MODELS]))
        raise TargetError(f"{base_url} does not serve {model!r}; it serves {names}{more}")
    return served


def served_models(body: bytes) -> list[str]:
    """The ids and aliases in an answer of /v1/models; empty where it has another form."""
    try:
        models = json.loads(body)["data"]
        names = [str(name) for model in models for name in (model["id"], *(model.get("aliases") or ()))]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return list(dict.fromkeys(names))


def _is_among(model: str, served: list[str]) -> bool:
    # Ollama lists `name:latest` and takes `name`; Gemini lists `models/name`.
    return any(name in served for name in (model, f"{model}:latest", f"models/{model}"))


def _about_key(headers: Mapping[str, str], key_name: str | None) -> str:
    if headers:
        return f"it refuses the API key; check {key_name or 'its value'}"
    return "it wants an API key; name the environment variable that holds it with `api_key_env`"


def _complete(client: httpx.Client, probe: Probe, deadline_ns: int) -> int:
    """One streamed completion of a few tokens, encoded and judged as those of the load are; when
    its first output came (monotonic ns)."""
    url = probe.base_url + ENDPOINT_PATHS[probe.endpoint]
    body = encode_body(_REQUEST, probe.model, probe.endpoint, probe.dialect, Sampling())
    # The first completion may compile kernels for minutes; asking again would not hasten it.
    now_ns = monotonic_ns()
    deadline_ns = max(deadline_ns, now_ns + NS_PER_S)
    timeout = httpx.Timeout(_QUICK_TIMEOUT_S, read=(deadline_ns - now_ns) / NS_PER_S)
    headers = {"Content-Type": "application/json"}
    with client.stream("POST", url, content=body, headers=headers, timeout=timeout) as response:
        if response.status_code != 200:
            response.read()
            answer = f"{response.status_code} to a completion: {shown(response.text, probe.secrets)}"
            if response.status_code in _FINAL_STATUSES:
                raise TargetError(f"{probe.name} answers {answer}")
            raise _NotYet(answer)
        return _first_output_ns(response, deadline_ns, probe.secrets)


def _first_output_ns(response: httpx.Response, deadline_ns: int, secrets: Sequence[str]) -> int:
    first_output, first_ns = FirstOutput(), None
    capture = Capture(0, "warmup", 0, 0, status=200, ending="complete")
    capture.headers = [(name.lower(), value) for name, value in response.headers.items()]
    for part in response.iter_bytes():
        now_ns = monotonic_ns()
        if now_ns > deadline_ns:
            raise _Endless("a stream that does not end")
        capture.reads.append(Read(None, now_ns, now_ns, part))
        if first_ns is None and first_output.feed(part):
            first_ns = now_ns
    decoded = decode(capture, tuple(secrets))
    # Tokens that end inside a character carry no text: an empty answer is one if it has a finish.
    if decoded.outcome not in ("ok", "empty") or decoded.finish_reason is None:
        why = decoded.error_message or (decoded.finish_reason and decoded.error_kind) or "no finish reason"
        raise _NotYet(f"a completion that failed: {shown(why)}")
    return first_ns or monotonic_ns()


def shown(text: str, secrets: Sequence[str] = ()) -> str:
    """Foreign text made fit for one line of an error: no secrets, no control characters, not long."""
    return redact(text, secrets)[:_SHOWN_CHARS] or "(nothing)"


def _in_words(error: Exception) -> str:
    """Why a question got no answer. httpx passes on the words of the socket, which are none for
    some failures and an errno for others."""
    text = str(error)
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if "refused" in text.lower() or "all connection attempts failed" in text.lower():
        return "connection refused"
    if isinstance(error, httpx.ConnectError) and "[Errno -" in text:
        return "no such host"
    return shown(text or type(error).__name__)
