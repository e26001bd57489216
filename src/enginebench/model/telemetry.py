"""One reading of one number beside the load: a row of telemetry.parquet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["engine", "host", "client", "gpu", "sampler"]


@dataclass(frozen=True, slots=True)
class Sample:
    at_ns: int
    """Monotonic; when the value was in hand."""
    target: str | None
    """The target under load; None for readings of the machine."""
    source: Source
    device: str | None
    """UUID of a GPU."""
    name: str
    value: float
