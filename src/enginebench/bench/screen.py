"""Where a run shows how it goes: a live table on a terminal, plain lines everywhere else."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from enginebench.bench.progress import Progress
from enginebench.clock import monotonic_ns
from enginebench.model.plan import Cell, CellResult
from enginebench.report.live import LevelProgress, live_view, plain_line
from enginebench.report.text import clean_lines
from enginebench.units import NS_PER_S

FAILURES = ("empty", "error", "truncated", "timeout", "cancelled", "rejected")
_RATE_OVER = 8
"""Looks over which chunks/s is taken: about two seconds."""


class Screen:
    """Implements `experiment.Screen`; use as a context manager."""

    def __init__(self, console: Console, n_cells: int, n_done: int = 0) -> None:
        self._console = console
        self._n_cells, self._n_done = n_cells, n_done
        self._live: Live | None = None
        self._last: LevelProgress | None = None
        self._seen: deque[tuple[int, int]] = deque(maxlen=_RATE_OVER)
        self._cell: Cell | None = None

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def say(self, line: str) -> None:
        for part in clean_lines(line):
            self._print(part)

    def _print(self, line: str) -> None:
        # A log wants a line in one piece; a terminal breaks it between words. Where nobody is left
        # to read (a closed terminal, a pipe to `head`), the run goes on and is saved all the same.
        with suppress(OSError):
            self._console.print(Text(line), soft_wrap=not self._console.is_terminal, highlight=False)

    def watch(self, cell: Cell, progress: Progress) -> None:
        if cell is not self._cell:
            self._cell = cell
            self._seen.clear()
        now_ns = monotonic_ns()
        self._seen.append((now_ns, progress["chunks"]))
        self._last = self._level_progress(cell, progress, now_ns)
        if self._live is not None:
            with suppress(OSError):
                self._live.update(live_view([self._last], now_ns), refresh=True)

    def ended(self, result: CellResult) -> None:
        self._n_done += 1
        if self._last is not None and self._cell == result.cell:
            phase = "done" if result.problem is None else "broken off"
            self._print(plain_line(replace(self._last, phase=phase, n_cells_done=self._n_done)))
        if result.problem is not None:
            self.say(f"  {result.problem}")

    def _level_progress(self, cell: Cell, progress: Progress, now_ns: int) -> LevelProgress:
        started_ns = progress["started_ns"] or now_ns
        (first_ns, first_chunks), (last_ns, last_chunks) = self._seen[0], self._seen[-1]
        elapsed_s = (last_ns - first_ns) / NS_PER_S
        return LevelProgress(
            target=cell.target,
            load=cell.load,
            level=cell.level,
            repeat=cell.repeat,
            n_cells_done=self._n_done,
            n_cells=self._n_cells,
            phase=_phase(progress, now_ns),
            elapsed_ns=now_ns - started_ns,
            planned_ns=cell.warmup_ns + cell.duration_ns if cell.duration_ns is not None else None,
            planned_requests=cell.requests,
            in_flight=progress["in_flight"],
            chunks=progress["chunks"],
            chunks_per_s=(last_chunks - first_chunks) / elapsed_s if elapsed_s > 0 else None,
            ok=progress["ok"],
            failed={o: progress[o] for o in FAILURES},
        )


def _phase(progress: Progress, now_ns: int) -> str:
    if not progress["started_ns"]:
        return "starting"
    if not progress["window_start_ns"]:
        return "warmup"
    end_ns = progress["window_end_ns"]
    return "drain" if end_ns and now_ns >= end_ns else "measure"
