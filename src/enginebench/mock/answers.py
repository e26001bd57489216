"""An answer in progress: tokens in, stamped writes out."""

from __future__ import annotations

from collections.abc import Callable

from enginebench.clock import monotonic_ns
from enginebench.mock import render
from enginebench.mock.asked import Asked
from enginebench.mock.http import Connection
from enginebench.mock.truth import Ending, Truth
from enginebench.model.record import ChunkKind

OnEnd = Callable[[Truth], None]


class StreamedAnswer:
    """One SSE event per token, each its own HTTP chunk and its own write, as vLLM's server does."""

    __slots__ = ("_asked", "_connection", "_n_tokens", "_on_end", "_shapes", "truth")

    def __init__(
        self, connection: Connection, asked: Asked, truth: Truth, shapes: render.Shapes, on_end: OnEnd
    ) -> None:
        self._connection, self._asked, self._shapes, self._on_end = connection, asked, shapes, on_end
        self.truth = truth
        self._n_tokens = 0

    def token(self, intended_ns: int) -> None:
        asked, shapes, position = self._asked, self._shapes, self._n_tokens
        if position == 0 and shapes.role is not None:
            self._send("role", shapes.role, intended_ns)
        self._n_tokens = position + 1
        word = render.word(asked.text_start + position)
        if self._n_tokens < asked.output_tokens:
            self._send("content", shapes.middle.fill(word), intended_ns)
            return
        self._send("content", shapes.last.fill(word), intended_ns)
        if shapes.usage is not None:
            self._send("usage", shapes.usage, intended_ns)
        self._send("done", shapes.done, intended_ns)
        self._connection.end_answer()
        self._end("complete")

    def abandon(self, ending: Ending) -> None:
        self._end(ending)

    def _send(self, kind: ChunkKind, data: bytes, intended_ns: int) -> None:
        truth = self.truth
        truth.kind.append(kind)
        truth.intended_ns.append(intended_ns)
        truth.sent_ns.append(monotonic_ns())
        self._connection.write(data)
        if self._connection.stalled:
            truth.n_queued += 1

    def _end(self, ending: Ending) -> None:
        self.truth.ending = ending
        self._on_end(self.truth)


class WholeAnswer:
    """The complete body in one write, when the last token is there."""

    __slots__ = ("_connection", "_n_left", "_on_end", "_response", "truth")

    def __init__(
        self, connection: Connection, asked: Asked, truth: Truth, response: bytes, on_end: OnEnd
    ) -> None:
        self._connection, self._response, self._on_end = connection, response, on_end
        self.truth = truth
        self._n_left = asked.output_tokens

    def token(self, intended_ns: int) -> None:
        self._n_left -= 1
        if self._n_left:
            return
        truth = self.truth
        truth.kind.append("content")
        truth.intended_ns.append(intended_ns)
        truth.sent_ns.append(monotonic_ns())
        self._connection.respond(200, self._response, {"x-request-id": truth.id})
        self.abandon("complete")

    def abandon(self, ending: Ending) -> None:
        self.truth.ending = ending
        self._on_end(self.truth)
