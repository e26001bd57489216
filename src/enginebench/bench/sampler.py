"""Readings beside the load: engine, host, client and GPUs, from a process of its own.

Neither the load worker nor the coordinator waits for it: an engine that is slow to answer its
/metrics delays the next reading, never a send. Its own cost is one of its readings.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

# pyarrow imports it with the first list that it converts: here once in the server process that
# samplers are forked from, and not for 0.4 s of CPU in each of them while the load begins.
import pandas as pd  # noqa: F401

from enginebench.bench.progress import Progress
from enginebench.clock import monotonic_ns
from enginebench.model.plan import Histogram
from enginebench.model.telemetry import Sample, Source
from enginebench.store.telemetry import TelemetryWriter
from enginebench.telemetry.host import HostReader, process_readings
from enginebench.telemetry.nvml import Readings, gpu_readings
from enginebench.telemetry.prometheus import EngineMetrics, MetricsReader, Snapshot, grown
from enginebench.units import NS_PER_S, seconds

PERIOD_NS = NS_PER_S
_LOOK_S = 0.05
"""How often it looks whether the measured window has opened or closed."""
_ANSWER_S = 2.0
"""How long an engine may take to tell its metrics."""
_LEAVE_S = 10.0
"""How long a sampler that was told to stop may take: it may still be waiting for the engine."""


@dataclass(frozen=True, slots=True)
class SamplerJob:
    """Everything that the sampler of one cell needs."""

    target: str
    path: Path
    metrics: EngineMetrics | None
    client_pid: int
    period_ns: int = PERIOD_NS


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the sampler sends back when its cell is over."""

    histograms: dict[str, Histogram]
    """What the engine observed inside the measured window."""
    cpu_s: float
    wall_s: float


def sample(job: SamplerJob, row: object, control: Connection) -> None:
    """Entry point of the sampler process. Anything that comes over `control`, or its end, stops it;
    what was read by then is already in its file."""
    # Ctrl-C reaches the whole foreground group; the coordinator decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)  # the load and the engine come first
    try:
        with ExitStack() as stack:
            sources = _Sources(
                writer=stack.enter_context(TelemetryWriter(job.path)),
                host=HostReader(),
                gpus=stack.enter_context(gpu_readings()),
                metrics=_reader(job, stack),
            )
            control.send(_until_told(job, sources, Progress(row), control))  # type: ignore[arg-type]
    except OSError:
        return  # no room for readings, or nobody left to tell: the load goes on without them


def _reader(job: SamplerJob, stack: ExitStack) -> MetricsReader | None:
    return stack.enter_context(MetricsReader(job.metrics, _ANSWER_S)) if job.metrics else None


@dataclass(slots=True)
class _Sources:
    writer: TelemetryWriter
    host: HostReader
    gpus: Callable[[], Readings] | None
    metrics: MetricsReader | None


@dataclass(slots=True)
class _Edges:
    """The engine's histograms as they stood when the window opened and when it closed."""

    opened: Snapshot | None = None
    closed: Snapshot | None = None

    def due(self, progress: Progress, now_ns: int) -> bool:
        """Whether the window has passed an edge that nobody has looked at yet."""
        start_ns, end_ns = progress["window_start_ns"], progress["window_end_ns"]
        return bool(
            (self.opened is None and start_ns and now_ns >= start_ns)
            or (self.closed is None and start_ns and end_ns and now_ns >= end_ns)
        )

    def note(self, seen: Snapshot, progress: Progress, asked_ns: int) -> None:
        start_ns, end_ns = progress["window_start_ns"], progress["window_end_ns"]
        if start_ns and asked_ns >= start_ns and self.opened is None:
            self.opened = seen
        if start_ns and end_ns and asked_ns >= end_ns and self.closed is None:
            self.closed = seen

    def histograms(self) -> dict[str, Histogram]:
        if self.opened is None or self.closed is None:
            return {}
        before = self.opened.histograms
        grew = {n: grown(before[n], after) for n, after in self.closed.histograms.items() if n in before}
        return {name: histogram for name, histogram in grew.items() if histogram is not None}


def _until_told(job: SamplerJob, sources: _Sources, progress: Progress, control: Connection) -> Sampled:
    began_ns, began_cpu_s = monotonic_ns(), time.process_time()
    edges = _Edges()

    def look() -> None:
        asked_ns = monotonic_ns()
        seen = sources.metrics.read() if sources.metrics else None
        if seen is not None:
            edges.note(seen, progress, asked_ns)
        sources.writer.add(_samples(job, sources, seen, time.process_time() - began_cpu_s))

    next_ns = began_ns
    told = False
    while not told:
        now_ns = monotonic_ns()
        if now_ns >= next_ns or edges.due(progress, now_ns):
            look()
        # Readings that a slow engine made impossible are left out, not made up for.
        next_ns += max(0, monotonic_ns() - next_ns + job.period_ns) // job.period_ns * job.period_ns
        told = control.poll(min(_LOOK_S, max(0.0, seconds(next_ns - monotonic_ns()))))
    if edges.due(progress, monotonic_ns()):
        look()
    return Sampled(edges.histograms(), time.process_time() - began_cpu_s, seconds(monotonic_ns() - began_ns))


def _samples(job: SamplerJob, sources: _Sources, seen: Snapshot | None, cpu_s: float) -> list[Sample]:
    at_ns = monotonic_ns()
    rows: list[Sample] = []

    def add(
        source: Source, found: Mapping[str, float], target: str | None, device: str | None = None
    ) -> None:
        rows.extend(Sample(at_ns, target, source, device, name, value) for name, value in found.items())

    if seen is not None:
        add("engine", seen.values, job.target)
    add("host", sources.host.read(), None)
    add("client", process_readings(job.client_pid), job.target)
    for uuid, readings in (sources.gpus() if sources.gpus else {}).items():
        add("gpu", readings, None, uuid)
    add("sampler", {"cpu_s": cpu_s}, job.target)
    return rows


@dataclass(frozen=True, slots=True)
class Sampling:
    """A sampler at work, as the coordinator sees it."""

    process: BaseProcess
    control: Connection

    def stop(self) -> Sampled | None:
        """None when it died or does not answer: its readings so far are kept all the same."""
        try:
            self.control.send("stop")
            sampled: Sampled | None = self.control.recv() if self.control.poll(_LEAVE_S) else None
        except (EOFError, OSError):
            sampled = None
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.control.close()
        return sampled


def start_sampler(job: SamplerJob, row: object, context: ForkServerContext) -> Sampling:
    """`row` is that of the cell's load worker (`progress.shared_row`)."""
    ours, theirs = Pipe()
    process = context.Process(target=sample, args=(job, row, theirs), daemon=True)
    process.start()
    theirs.close()
    return Sampling(process, ours)
