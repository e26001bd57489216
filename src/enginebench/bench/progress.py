"""What a load worker tells the coordinator while it runs: one row of a shared int64 array."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.context import BaseContext
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any

FIELDS = (
    "sent", "in_flight", "chunks", "ok", "empty", "error", "truncated", "timeout", "cancelled", "rejected",
    "started_ns", "window_start_ns", "window_end_ns", "beat_ns",
)  # fmt: skip
"""Outcomes here are what framing and status say at once; the decoder has the last word."""
_INDEX = {name: i for i, name in enumerate(FIELDS)}


def shared_row(context: BaseContext) -> Any:
    """A row that another process can be given. Each field has one writer and is one aligned
    word, so no lock is needed."""
    return context.Array("q", len(FIELDS), lock=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """The worker's side and the coordinator's view of one row."""

    row: SynchronizedArray[int]

    def __getitem__(self, name: str) -> int:
        return int(self.row[_INDEX[name]])

    def __setitem__(self, name: str, value: int) -> None:
        self.row[_INDEX[name]] = value

    def count(self, name: str, by: int = 1) -> None:
        self.row[_INDEX[name]] += by
