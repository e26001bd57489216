"""Closed-loop load: `level` users, each with one request in flight at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from enginebench.bench.progress import Progress
from enginebench.bench.source import RequestSource, now_due
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture
from enginebench.model.client import Client
from enginebench.model.plan import Cell
from enginebench.model.record import Outcome
from enginebench.model.request import Phase
from enginebench.store.spool import RequestFacts
from enginebench.units import seconds

MAX_FAILURES_IN_A_ROW = 30
"""More than this (or 3 per user) without one success between them, and the cell is given up."""
LONGEST_PAUSE_S = 1.0


@dataclass(slots=True)
class Load:
    """State of one cell's load while it lasts."""

    cell: Cell
    client: Client
    source: RequestSource
    progress: Progress
    finished: Callable[[Capture, RequestFacts], None]
    """Takes every ended capture (the spool)."""
    window_began: Callable[[int], None]
    facts: dict[int, RequestFacts] = field(default_factory=dict)
    """Of the requests in flight, by seq."""
    first_pause_s: float = 0.05
    """A user's wait after a failure; doubled up to LONGEST_PAUSE_S while failures follow each other."""
    stopped: bool = False
    problem: str | None = None
    _failures_in_a_row: int = 0

    def stop(self, problem: str | None) -> None:
        """No further request; what is in flight ends as cancelled."""
        self.stopped = True
        self.problem = self.problem or problem
        self.client.abort()

    async def run(self) -> None:
        """Warm-up, measured window, drain. Returns when nothing is in flight any more."""
        start_ns = monotonic_ns()
        self.progress["started_ns"] = start_ns
        window_ns = start_ns + self.cell.warmup_ns
        end_ns = window_ns + self.cell.duration_ns if self.cell.duration_ns is not None else None
        self._open_window_at(window_ns)
        if end_ns is not None:
            self.progress["window_end_ns"] = end_ns
        users = [asyncio.create_task(self._user(window_ns, end_ns)) for _ in range(self.cell.level)]
        await asyncio.gather(*users)
        if self.stopped:
            now_ns = monotonic_ns()
            self.progress["window_end_ns"] = min(self.progress["window_end_ns"] or now_ns, now_ns)

    def _open_window_at(self, window_ns: int) -> None:
        def opened() -> None:
            if not self.stopped:
                self.progress["window_start_ns"] = window_ns
                self.window_began(window_ns)

        delay_s = seconds(max(0, window_ns - monotonic_ns()))
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, opened)
        else:
            opened()

    def _next_phase(self, window_ns: int, end_ns: int | None) -> Phase | None:
        now_ns = monotonic_ns()
        if self.stopped or (end_ns is not None and now_ns >= end_ns):
            return None
        if now_ns < window_ns:
            return "warmup"
        if self.cell.requests is not None and self.progress["sent"] >= self.cell.requests:
            return None
        return "measure"

    async def _user(self, window_ns: int, end_ns: int | None) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self.first_pause_s
        while (phase := self._next_phase(window_ns, end_ns)) is not None:
            prepared = self.source.take(phase)
            call = now_due(prepared)
            self.facts[call.seq] = prepared.facts
            self.progress.count("in_flight")
            if phase == "measure":
                self.progress.count("sent")
                if self.cell.requests is not None and self.progress["sent"] == self.cell.requests:
                    self.progress["window_end_ns"] = call.intended_ns
            loop.call_soon(self.source.refill, phase)
            capture = await self.client.send(call)
            self.progress.count("in_flight", -1)
            self.progress["chunks"] = self.client.chunks_read
            self.finished(capture, self.facts.pop(call.seq))
            failed = self._count(capture)
            if failed and not self.stopped:
                # A server that refuses at once would otherwise be hammered in a tight loop.
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                pause_s = self.first_pause_s

    def _count(self, capture: Capture) -> bool:
        outcome = rough_outcome(capture)
        if capture.phase == "measure":
            self.progress.count(outcome)
        failed = outcome != "ok"
        self._failures_in_a_row = self._failures_in_a_row + 1 if failed else 0
        limit = max(MAX_FAILURES_IN_A_ROW, 3 * self.cell.level)
        if self._failures_in_a_row >= limit and not self.stopped:
            last = capture.ending_detail or f"HTTP {capture.status}"
            self.stop(f"{limit} requests failed in a row, the last with: {last}")
        return failed


def rough_outcome(capture: Capture) -> Outcome:
    """The outcome as far as it shows without decoding; the decoder has the last word. A quoted
    word in generated text is escaped in its JSON, so `"error"` is a key."""
    if capture.ending == "cancelled":
        return "cancelled"
    if capture.ending in ("first_token_timeout", "idle_timeout", "total_timeout"):
        return "timeout"
    if capture.status in (429, 503):
        return "rejected"
    if capture.ending == "complete":
        if capture.status != 200 or any(b'"error"' in read.body for read in capture.reads[-3:]):
            return "error"
        return "ok" if capture.saw_output else "empty"
    return "truncated" if capture.reads else "error"
