"""The endpoints: which path does what."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Callable

import msgspec

import enginebench
from enginebench.mock import metrics, render
from enginebench.mock.answers import StreamedAnswer, WholeAnswer
from enginebench.mock.asked import Asked, Refused, read_chat, read_completion
from enginebench.mock.config import MAX_MODEL_LEN, MockConfig
from enginebench.mock.engine import Engine
from enginebench.mock.http import Connection, HttpRequest
from enginebench.mock.truth import Truth, TruthLog

_ID_PREFIX = {"chat": "chatcmpl-", "completions": "cmpl-"}
_FINISH_REASONS = ("stop", "length", "abort")
_CLIENT_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)

_Route = Callable[[Connection, HttpRequest], None]


class Service:
    """One mock engine behind any number of connections."""

    def __init__(self, config: MockConfig, loop: asyncio.AbstractEventLoop) -> None:
        self._config = config
        self._engine = Engine(loop, config.scheduler)
        self.truth = TruthLog(loop, config.truth_file)
        self._success = Counter(dict.fromkeys(_FINISH_REASONS, 0))
        self._started_s = int(time.time())
        self._routes: dict[str, tuple[str, _Route]] = {
            "/v1/chat/completions": ("POST", self._chat),
            "/v1/completions": ("POST", self._completions),
            "/v1/models": ("GET", self._models),
            "/health": ("GET", self._health),
            "/version": ("GET", self._version),
            "/metrics": ("GET", self._metrics),
            "/truth": ("GET", self._truth),
        }

    def handle(self, connection: Connection, request: HttpRequest) -> None:
        method, route = self._routes.get(request.path, (None, None))
        if route is None:
            connection.respond(404, render.detail(404))
        elif method != request.method:
            connection.respond(405, render.detail(405), {"allow": str(method)})
        else:
            try:
                route(connection, request)
            except Refused as refused:
                connection.respond(refused.status, render.refusal(refused))

    def close(self) -> None:
        self._engine.close()
        self.truth.close()

    def _chat(self, connection: Connection, request: HttpRequest) -> None:
        self._generate(
            connection, request, read_chat(bytes(request.body), self._config.model, self._config.seed)
        )

    def _completions(self, connection: Connection, request: HttpRequest) -> None:
        self._generate(
            connection, request, read_completion(bytes(request.body), self._config.model, self._config.seed)
        )

    def _generate(self, connection: Connection, request: HttpRequest, asked: Asked) -> None:
        if asked.stream and request.http_version == "1.0":
            raise Refused(505, "A streamed answer needs HTTP/1.1.", "HTTP Version Not Supported", "stream")
        truth = Truth(
            id=_ID_PREFIX[asked.endpoint] + _request_id(request),
            endpoint=asked.endpoint,
            stream=asked.stream,
            arrived_ns=request.arrived_ns,
            prompt_tokens=asked.prompt_tokens,
            output_tokens=asked.output_tokens,
        )
        named = truth.id, int(time.time()), self._config.model

        def ended(truth: Truth) -> None:
            self.truth.ended(truth)
            if truth.ending == "complete":
                self._success[asked.finish_reason] += 1
            else:
                self._success["abort"] += 1
                self._engine.cancel(seq_id)

        answer: StreamedAnswer | WholeAnswer
        if asked.stream:
            answer = StreamedAnswer(connection, truth, render.stream_shapes(asked, *named), ended)
            connection.write_head(
                200,
                {
                    "content-type": "text/event-stream; charset=utf-8",
                    "x-request-id": truth.id,
                    "transfer-encoding": "chunked",
                },
            )
        else:
            answer = WholeAnswer(connection, asked, truth, render.whole_answer(asked, *named), ended)
        connection.answer = answer
        seq_id = self._engine.submit(
            request.arrived_ns, asked.prompt_tokens, asked.output_tokens, answer.token
        )

    def _models(self, connection: Connection, request: HttpRequest) -> None:
        connection.respond(200, render.models(self._config.model, self._started_s, MAX_MODEL_LEN))

    def _health(self, connection: Connection, request: HttpRequest) -> None:
        connection.respond(200, b"")

    def _version(self, connection: Connection, request: HttpRequest) -> None:
        connection.respond(200, msgspec.json.encode({"version": enginebench.__version__}))

    def _metrics(self, connection: Connection, request: HttpRequest) -> None:
        engine = self._engine
        counts = metrics.Counts(
            running=engine.n_running,
            waiting=engine.n_waiting,
            prompt_tokens=engine.prompt_tokens_total,
            generation_tokens=engine.generation_tokens_total,
            success=self._success,
        )
        body = metrics.exposition(self._config.model, counts)
        connection.respond(200, body, {"content-type": "text/plain; version=1.0.0; charset=utf-8"})

    def _truth(self, connection: Connection, request: HttpRequest) -> None:
        headers = {"content-type": "application/jsonl", "x-truth-forgotten": str(self.truth.n_forgotten)}
        connection.respond(200, self.truth.render(), headers)


def _request_id(request: HttpRequest) -> str:
    """The client's own X-Request-Id, as vLLM does, or a random one."""
    given = request.headers.get("x-request-id", "")
    return given if _CLIENT_ID.fullmatch(given) else os.urandom(8).hex()
