"""What a run shows while it lasts: a table that is drawn again and again, or one line a level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from enginebench.report.tables import LOAD_HEADINGS, LOAD_TITLES
from enginebench.report.text import clean, whole
from enginebench.units import NS_PER_S, seconds

STALE_AFTER_NS = 3 * NS_PER_S
"""A worker reports several times a second; silent for so long, it hangs or has no CPU."""


@dataclass(frozen=True, slots=True)
class LevelProgress:
    """How far one cell has come. All counts are of the cell, warm-up included."""

    target: str
    load: str
    level: float
    repeat: int
    n_cells_done: int
    n_cells: int
    """Cells of the whole run, this one included."""
    phase: str
    """warmup | measure | drain | done, or another word for what goes on."""
    elapsed_ns: int
    """Since the cell began, as of `updated_ns`."""
    planned_ns: int | None
    """Planned length of the cell; None where it ends by count."""
    planned_requests: int | None
    in_flight: int
    chunks: int
    chunks_per_s: float | None
    """Over the last moments; None before there is a rate."""
    ok: int
    failed: Mapping[str, int] = field(default_factory=dict)
    """Requests by outcome, other than ok."""
    updated_ns: int | None = None
    """Monotonic time of these numbers; None where they are as new as the screen."""


def live_view(rows: Sequence[LevelProgress], now_ns: int) -> RenderableType:
    """The given cells, one a line, above the progress of the whole run. `now_ns` is monotonic."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # The only column that may shrink: its text does not wrap, it is cut.
    table.add_column("target", min_width=6, max_width=30)
    loads = {row.load for row in rows}
    headings = [LOAD_HEADINGS.get(next(iter(loads)), "level") if len(loads) == 1 else "level"]
    for heading in (*headings, "phase", "elapsed", "in flight", "chunks/s", "ok", "failed"):
        table.add_column(heading, justify="left" if heading == "phase" else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(clean(row.target), no_wrap=True, overflow="ellipsis"),
            Text(whole(row.level)),
            Text(clean(row.phase)),
            Text(_elapsed(row, now_ns)),
            Text(f"{row.in_flight:,}"),
            Text("n/a" if row.chunks_per_s is None else f"{row.chunks_per_s:,.0f}"),
            Text(f"{row.ok:,}" + (f"/{row.planned_requests:,}" if row.planned_requests else "")),
            Text(f"{sum(row.failed.values()):,}", style="bold red" if sum(row.failed.values()) else ""),
        )
    parts: list[RenderableType] = [table]
    for row in rows:
        if outcomes := _outcomes(row.failed):
            parts.append(Text(f"{clean(row.target)} {whole(row.level)}: {outcomes}", style="red"))
        if (silent_ns := _stale_ns(row, now_ns)) > STALE_AFTER_NS:
            silence = f"nothing from the load worker for {seconds(silent_ns):.0f} s"
            parts.append(Text(f"{clean(row.target)}: {silence}", style="yellow"))
    if rows:
        parts.append(_whole_run(rows[-1], now_ns))
    return Group(*parts)


def _whole_run(row: LevelProgress, now_ns: int) -> RenderableType:
    share = 0.0
    if row.phase != "done" and row.planned_ns:
        share = min(1.0, (row.elapsed_ns + _stale_ns(row, now_ns)) / row.planned_ns)
    elif row.phase != "done" and row.planned_requests:
        share = min(1.0, (row.ok + sum(row.failed.values())) / row.planned_requests)
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_row(
        Text(f"{row.n_cells_done:,} of {row.n_cells:,} cells done", style="dim"),
        ProgressBar(total=max(1, row.n_cells), completed=row.n_cells_done + share, width=30),
    )
    return line


def _stale_ns(row: LevelProgress, now_ns: int) -> int:
    return 0 if row.updated_ns is None else max(0, now_ns - row.updated_ns)


def _elapsed(row: LevelProgress, now_ns: int) -> str:
    stale_ns = 0 if row.phase == "done" else _stale_ns(row, now_ns)
    elapsed = f"{seconds(row.elapsed_ns + stale_ns):.0f}"
    return f"{elapsed}/{seconds(row.planned_ns):.0f} s" if row.planned_ns else f"{elapsed} s"


def _outcomes(failed: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {clean(outcome)}" for outcome, n in failed.items() if n)


def plain_line(progress: LevelProgress) -> str:
    """One line for a log, at the end of a level:
    `[3/14] vllm, concurrency 8, repeat 0: done after 70.2 s, 1,204 ok, 3 failed (3 timeout), 61,000 chunks`.
    """
    level = f"{LOAD_TITLES.get(progress.load, clean(progress.load))} {whole(progress.level)}"
    failed = sum(progress.failed.values())
    outcomes = f" ({_outcomes(progress.failed)})" if failed else ""
    return (
        f"[{progress.n_cells_done}/{progress.n_cells}] {clean(progress.target)}, {level}, "
        f"repeat {progress.repeat}: {clean(progress.phase)} after {seconds(progress.elapsed_ns):.1f} s, "
        f"{progress.ok:,} ok, {failed:,} failed{outcomes}, {progress.chunks:,} chunks"
    )
