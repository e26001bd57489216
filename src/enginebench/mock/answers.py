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

    __slots__ = ("_connection", "_last", "_n_tokens", "_on_end", "_shapes", "truth")

    def __init__(self, connection: Connection, truth: Truth, shapes: render.Shapes, on_end: OnEnd) -> None:
        self._connection, self._shapes, self._on_end = connection, shapes, on_end
        self.truth = truth
        self._n_tokens = 0
        self._last = truth.output_tokens - 1

    def token(self, intended_ns: int) -> None:
        position, shapes = self._n_tokens, self._shapes
        self._n_tokens = position + 1
        if position == 0 and shapes.role is not None:
            self._send(shapes.role, intended_ns)
        if position < self._last:
            self._send(shapes.middle.fill(position), intended_ns)
            return
        self._send(shapes.last.fill(position), intended_ns)
        if shapes.usage is not None:
            self._send(shapes.usage, intended_ns)
        self._send(shapes.done, intended_ns)
        self._connection.end_answer()
        self.abandon("complete")

    def abandon(self, ending: Ending) -> None:
        self.truth.ending = ending
        self.truth.kind = self._kinds()
        self._on_end(self.truth)

    def _send(self, event: bytes, intended_ns: int) -> None:
        truth, connection = self.truth, self._connection
        truth.intended_ns.append(intended_ns)
        truth.sent_ns.append(monotonic_ns())
        connection.write(event)
        if connection.stalled:
            truth.n_queued += 1

    def _kinds(self) -> list[ChunkKind]:
        """Of the events sent so far. Told at the end, from the order that they always have."""
        shapes = self._shapes
        kinds: list[ChunkKind] = [] if shapes.role is None else ["role"]
        kinds += ["content"] * self.truth.output_tokens
        kinds += ["done"] if shapes.usage is None else ["usage", "done"]
        return kinds[: len(self.truth.sent_ns)]


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
