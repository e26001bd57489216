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
class CellResult:
    """What run.json keeps of a finished (or broken-off) cell, beside its records."""

    cell: Cell
    window: Window | None
    engine_start: int | None
    finished: bool
    problem: str | None
    """Why it broke off, in words; None when it did not."""
    client: dict[str, float | None]
    """Of the load worker: cpu_s, wall_s, loop_lag_p99_s, loop_lag_max_s, peak_rss_bytes."""
    engine_counters: dict[str, float] = field(default_factory=dict)
    """How much the engine's own counters (prompt_tokens, generation_tokens) grew from before the
    first send to after the drain; empty where it tells none."""
