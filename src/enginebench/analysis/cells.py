"""The records of a run, taken apart into its cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True, order=True)
class CellKey:
    """What makes one level; levels of a target are listed in this order."""

    target: str
    load: str
    level: float
    repeat: int


def by_level(records: pa.Table) -> Iterator[tuple[CellKey, pa.Table]]:
    """The rows of each level. Files hold whole levels, so most often this only cuts the table."""
    if not len(records):
        return
    group = np.zeros(len(records), np.int64)
    for name in ("target", "load", "level", "repeat"):
        _, codes = np.unique(_keys(records, name), return_inverse=True)
        group = group * (codes.max() + 1) + codes
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    if len(starts) > len(np.unique(group)):
        order = np.argsort(group, kind="stable")
        records, group = records.take(pa.array(order)), group[order]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(group)], strict=True):
        rows = records.slice(start, end - start)
        target, load, level, repeat = (
            rows.column(n)[0].as_py() for n in ("target", "load", "level", "repeat")
        )
        yield CellKey(target, load, level, repeat), rows


def _keys(records: pa.Table, name: str) -> np.ndarray[Any, Any]:
    column = records.column(name).combine_chunks()
    keys = column.indices if isinstance(column, pa.DictionaryArray) else column
    found: np.ndarray[Any, Any] = keys.to_numpy(zero_copy_only=False)
    return found
