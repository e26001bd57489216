"""Distributions and the course of a run over time, for the charts of a report.

All numbers are thinned out here: a report must open at once however long the run was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from enginebench.analysis import columns, metrics
from enginebench.analysis.cells import CellKey, by_level
from enginebench.analysis.columns import FloatArray, IntArray
from enginebench.analysis.requests import Requests, read_requests
from enginebench.analysis.windows import tokens_per_chunk
from enginebench.model.details import SHARES, Details, Distribution, Failures, Track
from enginebench.model.run import Run
from enginebench.units import NS_PER_S

MOST_STEPS = 400
"""Over the whole run: about as many as a chart has pixels to tell apart."""
STEPS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_GAUGES = ("requests_waiting", "kv_usage")

_LATENCIES: dict[str, Callable[[Requests], FloatArray]] = {
    "ttft": lambda requests: metrics.ttft_ns(requests)[requests.sample],
    "icl": lambda requests: metrics.icl_ns(requests, requests.sample),
    "e2e": lambda requests: metrics.e2e_ns(requests)[requests.sample],
}


@dataclass(frozen=True, slots=True)
class _Grid:
    """Steps of equal width from the first event of the run on."""

    origin_ns: int
    step_ns: int

    def edges(self, from_ns: int, until_ns: int) -> IntArray:
        """Step boundaries around a span, at least two."""
        first = (from_ns - self.origin_ns) // self.step_ns
        last = max(-(-(until_ns - self.origin_ns) // self.step_ns), first + 1)
        edges: IntArray = self.origin_ns + np.arange(first, last + 1, dtype=np.int64) * self.step_ns
        return edges

    def middle_s(self, edges: IntArray) -> list[float]:
        return [round(float(t), 3) for t in (edges[:-1] - self.origin_ns + self.step_ns / 2) / NS_PER_S]


def details(run: Run) -> Details:
    """Of all levels that have records; without any there is nothing."""
    cells = [(key, read_requests(table), table) for key, table in by_level(run.records)]
    cells = [cell for cell in cells if len(cell[1])]
    if not cells:
        return Details(0.0, (), (), ())
    origin_ns = min(int(requests.started_ns.min()) for _, requests, _ in cells)
    end_ns = max(int(requests.last_event_ns.max()) for _, requests, _ in cells)
    grid = _Grid(origin_ns, _step_ns(end_ns - origin_ns))
    cells.sort(key=lambda cell: int(cell[1].started_ns.min()))
    return Details(
        step_s=grid.step_ns / NS_PER_S,
        distributions=tuple(_distributions([(key, requests) for key, requests, _ in cells])),
        tracks=(
            *_tracks([(key.target, requests) for key, requests, _ in cells], grid),
            *_gauges(run.telemetry, grid),
        ),
        failures=tuple(_failures([(key.target, requests, t) for key, requests, t in cells], grid)),
    )


def _step_ns(span_ns: int) -> int:
    fine = next((s for s in STEPS_S if span_ns <= MOST_STEPS * s * NS_PER_S), STEPS_S[-1])
    return round(fine * NS_PER_S)


def _distributions(cells: list[tuple[CellKey, Requests]]) -> Iterator[Distribution]:
    levels: dict[tuple[str, str, float], list[Requests]] = {}
    for key, requests in cells:
        levels.setdefault((key.target, key.load, key.level), []).append(requests)
    for (target, load, level), repeats in sorted(levels.items(), key=lambda item: item[0]):
        for metric, samples_ns in _LATENCIES.items():
            sample = np.concatenate([samples_ns(requests) for requests in repeats])
            sample = sample[np.isfinite(sample)]
            if len(sample):
                values = np.quantile(sample, SHARES) / 1e6
                rounded = tuple(float(f"{value:.4g}") for value in values)
                yield Distribution(target, load, level, metric, len(sample), rounded)


def _tracks(cells: list[tuple[str, Requests]], grid: _Grid) -> Iterator[Track]:
    for target in dict.fromkeys(name for name, _ in cells):
        at_s: list[float | None] = []
        flying: list[float | None] = []
        speeds: list[float | None] = []
        for name, requests in cells:
            if name != target:
                continue
            edges = grid.edges(int(requests.started_ns.min()), int(requests.last_event_ns.max()))
            at_s += [*grid.middle_s(edges), None]
            flying += [*_thin(_in_flight(requests, edges)), None]
            speeds += [*_thin(_tokens_per_s(requests, edges)), None]
        yield Track(target, "in_flight", tuple(at_s[:-1]), tuple(flying[:-1]))
        yield Track(target, "output_throughput", tuple(at_s[:-1]), tuple(speeds[:-1]))


def _thin(values: FloatArray) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _in_flight(requests: Requests, edges: IntArray) -> FloatArray:
    """Mean number of requests between sent and their last event, step by step."""
    sent = requests.sent.known
    begun = _elapsed(requests.sent.values[sent], edges)
    ended = _elapsed(requests.last_event_ns[sent], edges)
    mean: FloatArray = np.diff(begun - ended) / np.diff(edges)
    return mean


def _elapsed(since_ns: IntArray, edges: IntArray) -> FloatArray:
    """Sum over all moments before an edge of the time from them to the edge."""
    since = np.sort(since_ns - edges[0]).astype(np.float64)
    summed = np.concatenate([[0.0], np.cumsum(since)])
    at = (edges - edges[0]).astype(np.float64)
    n = np.searchsorted(since, at, side="right")
    elapsed: FloatArray = n * at - summed[n]
    return elapsed


def _tokens_per_s(requests: Requests, edges: IntArray) -> FloatArray:
    """Output tokens of successful requests by their arrival, as in the throughput of a level."""
    outputs = requests.outputs
    told = requests.tokens.per_chunk | requests.tokens.visible.known
    counted = (requests.ok & told)[outputs.request]
    tokens = tokens_per_chunk(requests)[counted]
    found, _ = np.histogram(outputs.at_ns[counted] - edges[0], edges - edges[0], weights=tokens)
    speed: FloatArray = found / (np.diff(edges) / NS_PER_S)
    return speed


def _failures(cells: list[tuple[str, Requests, pa.Table]], grid: _Grid) -> Iterator[Failures]:
    found: dict[tuple[str, str], dict[float, int]] = {}
    for target, requests, table in cells:
        failed = np.flatnonzero(requests.measured & ~requests.ok & ~requests.cancelled)
        kinds = table.column("error_kind").combine_chunks().to_pylist() if len(failed) else []
        outcomes = table.column("outcome").combine_chunks().to_pylist() if len(failed) else []
        for row in failed:
            step = (int(requests.last_event_ns[row]) - grid.origin_ns) // grid.step_ns
            at_s = round((step + 0.5) * grid.step_ns / NS_PER_S, 3)
            steps = found.setdefault((target, kinds[row] or outcomes[row]), {})
            steps[at_s] = steps.get(at_s, 0) + 1
    for (target, kind), steps in found.items():
        yield Failures(target, kind, tuple(sorted(steps)), tuple(steps[at] for at in sorted(steps)))


def _gauges(telemetry: pa.Table, grid: _Grid) -> Iterator[Track]:
    """Means of the engine's own readings in each step; a step without one is a gap."""
    engine = telemetry.filter(columns.is_one_of(telemetry, "source", {"engine"})) if len(telemetry) else None
    if engine is None or not len(engine):
        return
    for target in pc.unique(engine.column("target")).drop_null().to_pylist():
        own = engine.filter(columns.is_one_of(engine, "target", {target}))
        for name in _GAUGES:
            rows = own.filter(columns.is_one_of(own, "name", {name}))
            if len(rows):
                yield _gauge(target, name, rows, grid)


def _gauge(target: str, name: str, rows: pa.Table, grid: _Grid) -> Track:
    steps = (columns.filled(rows, "at_ns") - grid.origin_ns) // grid.step_ns
    values = rows.column("value").to_numpy()
    found, code = np.unique(steps, return_inverse=True)
    means = np.bincount(code, values) / np.bincount(code)
    at_s: list[float | None] = []
    shown: list[float | None] = []
    for i, step in enumerate(found):
        # A sampler may be slower than the steps: only a long silence is a gap.
        if i and (step - found[i - 1]) * grid.step_ns > max(3 * grid.step_ns, 5 * NS_PER_S):
            at_s.append(None)
            shown.append(None)
        at_s.append(round((int(step) + 0.5) * grid.step_ns / NS_PER_S, 3))
        shown.append(float(f"{means[i]:.4g}"))
    return Track(target, name, tuple(at_s), tuple(shown))
