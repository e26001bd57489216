"""What the checks look at, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from enginebench.analysis.requests import Requests
from enginebench.model.plan import CellResult
from enginebench.model.summary import Metric

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One level."""

    requests: Requests
    result: CellResult | None
    """None for records that run.json knows no cell for."""
    cap: float | None
    """Concurrency limit; None for another kind of load."""
    metrics: Mapping[str, Metric]
    unique_prompts: bool
    shares_cores: bool | None = None
    """Whether engine and client may run on the same cores; None where that is not known."""

    @property
    def n_ok(self) -> int:
        return int(self.requests.sample.sum())

    @property
    def n_outputs(self) -> int:
        """Output chunks of measured requests."""
        return int(self.requests.measured[self.requests.outputs.request].sum())


@dataclass(frozen=True, slots=True)
class Finding:
    verdict: Verdict
    value: float | None
    advice: str = ""


def unless(passes: bool, verdict: Verdict, value: float | None, advice: str) -> Finding:
    """A pass, or else `verdict` with its advice."""
    return Finding("pass", value) if passes else Finding(verdict, value, advice)
