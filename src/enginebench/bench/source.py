"""Requests of one cell, encoded ahead of time so that making a prompt never delays a send."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from enginebench.clock import monotonic_ns
from enginebench.model.client import Call
from enginebench.model.plan import WARMUP_SEQ, Cell
from enginebench.model.request import Phase, Request
from enginebench.store.spool import RequestFacts


@dataclass(frozen=True, slots=True)
class Prepared:
    seq: int
    phase: Phase
    body: bytes
    facts: RequestFacts

    def due(self, intended_ns: int) -> Call:
        return Call(self.seq, self.phase, intended_ns, self.body)


class RequestSource:
    """Hands out the cell's requests in order. `make` gives request `seq`, `encode` its body.

    Warm-up requests are of the same shape with other seqs, so no measured prompt was seen before.
    """

    def __init__(
        self, cell: Cell, make: Callable[[int], Request], encode: Callable[[Request], bytes]
    ) -> None:
        self._cell = cell
        self._make, self._encode = make, encode
        self._next: dict[Phase, int] = {"warmup": cell.first_seq + WARMUP_SEQ, "measure": cell.first_seq}
        self._ready: dict[Phase, deque[Prepared]] = {"warmup": deque(), "measure": deque()}
        ahead = 2 * cell.level + 16
        for phase, n in (
            ("warmup", ahead if cell.warmup_ns else 0),
            ("measure", min(ahead, cell.requests or ahead)),
        ):
            for _ in range(n):
                self._prepare(phase)  # type: ignore[arg-type]

    def _prepare(self, phase: Phase) -> None:
        seq = self._next[phase]
        self._next[phase] = seq + 1
        request = self._make(seq)
        facts = RequestFacts(request.prompt_sha256, request.asked_prompt_tokens, request.asked_output_tokens)
        self._ready[phase].append(Prepared(seq, phase, self._encode(request), facts))

    def take(self, phase: Phase) -> Prepared:
        ready = self._ready[phase]
        if not ready:
            self._prepare(phase)
        return ready.popleft()

    def refill(self, phase: Phase) -> None:
        """Makes one more; to be called when a send is out, not before it."""
        n_made = self._next[phase] - self._cell.first_seq
        if phase == "warmup" or self._cell.requests is None or n_made < self._cell.requests:
            self._prepare(phase)


def now_due(prepared: Prepared) -> Call:
    """Closed loop: a user's next request is due the moment it is taken."""
    return prepared.due(monotonic_ns())
