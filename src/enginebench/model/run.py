"""A run in memory: metadata and columnar records of one experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from enginebench.model.plan import CellResult

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from enginebench.model.summary import Summary


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that one folder holds. `enginebench.load(folder)` makes one."""

    folder: Path
    meta: Mapping[str, Any]
    """run.json as it stands (docs/formats.md)."""
    cells: tuple[CellResult, ...]
    records: pa.Table
    """One row per request; list columns per chunk."""
    telemetry: pa.Table
    """One row per reading beside the load (docs/formats.md); empty when there are none."""
    derive: Callable[[Run], Summary] = field(repr=False)
    """How a summary is made: given by the loader, so that this package knows no analysis."""

    def frame(self) -> pd.DataFrame:
        """The records as a pandas DataFrame: one row per request, numpy arrays in the chunk columns."""
        frame: pd.DataFrame = self.records.to_pandas()
        return frame

    def summary(self) -> Summary:
        return self.derive(self)
