"""The cells of a run: one load level of one target in one repeat."""

from __future__ import annotations

from dataclasses import dataclass, field

WARMUP_SEQ = 1 << 31
"""Added to the seq of warm-up requests: the same shape, never the same prompts."""
CELL_SEQ = 1 << 32
"""Distance between the first seqs of two cells, so that no prompt is sent twice in a run."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one worker group executes without a pause: warm-up, measured window, drain."""

    target: str
    load: str
    level: int
    repeat: int
    ordinal: int
    """Position among the cells of its own target: equal ordinals of two targets send equal prompts."""
    warmup_ns: int
    duration_ns: int | None
    requests: int | None

    @property
    def first_seq(self) -> int:
        return self.ordinal * CELL_SEQ

    @property
    def file_stem(self) -> str:
        return f"{self.target}-l{self.level}-r{self.repeat}"


@dataclass(frozen=True, slots=True)
class Window:
    """The measured span of a finished cell, absolute monotonic ns."""

    start_ns: int
    """The load is up and warm from here; requests sent from here on have phase `measure`."""
    end_ns: int | None
    """No request is sent from here on. None when the cell never got there."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A Prometheus histogram: as an engine serves it, or how much it grew over a span."""

    le: tuple[float, ...]
    """Upper bounds in seconds, ascending; the last bucket, which has none, is not among them."""
    n: tuple[int, ...]
    """Observations up to each bound: cumulative."""
    sum: float | None
    """Of all observed values, in seconds."""
    count: int
    """All observations, those beyond the last bound included."""


@dataclass(frozen=True, slots=True)
class CellResult:
    """What run.json keeps of a finished (or broken-off) cell, beside its records."""

    cell: Cell
    window: Window | None
    engine_start: int | None
    finished: bool
    problem: str | None
    """Why it broke off, in words; None when it did not."""
    client: dict[str, float | None]
    """Of the load worker: cpu_s, wall_s, loop_lag_p99_s, loop_lag_max_s, peak_rss_bytes. And of the
    sampler beside it: sampler_cpu_s, sampler_wall_s."""
    engine_counters: dict[str, float] = field(default_factory=dict)
    """How much the engine's own counters (prompt_tokens, generation_tokens) grew from before the
    first send to after the drain; empty where it tells none."""
    engine_histograms: dict[str, Histogram] = field(default_factory=dict)
    """The engine's own latencies (ttft_seconds, itl_seconds, e2e_seconds) that it observed from
    the opening of the window to its close, each looked at some 50 ms after; empty where it has none."""
