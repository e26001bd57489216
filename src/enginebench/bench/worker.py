"""The load worker: a process of its own, so that drawing, decoding and sampling never delay a send."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from enginebench.bench.cell_spool import CellSpool
from enginebench.bench.closed_loop import Load
from enginebench.bench.progress import Progress
from enginebench.bench.source import RequestSource
from enginebench.clients.poller import new_event_loop
from enginebench.clients.socket import SocketClient
from enginebench.clock import monotonic_ns
from enginebench.model.client import Endpoint
from enginebench.model.plan import Cell
from enginebench.model.request import Dialect, EndpointKind, Request
from enginebench.model.scenario import Workload
from enginebench.store.spool import CellHeader, Spool
from enginebench.units import NS_PER_S, seconds
from enginebench.wire.encode import encode_body
from enginebench.workload.prompts import Tokenizer, make_request

_LAG_PROBE_S = 0.02


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a worker needs, handed over a pipe: never on a command line."""

    cell: Cell
    endpoint: Endpoint = field(repr=False)
    endpoint_kind: EndpointKind
    model: str
    dialect: Dialect
    workload: Workload
    tokenizer_path: str | None
    seed: int
    spool_path: Path
    engine_start: int | None
    secrets: tuple[str, ...] = field(repr=False)
    worker: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the worker sends back when its cell is over."""

    problem: str | None
    client: dict[str, float | None]


def work(job: Job, row: object, control: Connection) -> None:
    """Entry point of the worker process. `control` carries "stop" to us and our Outcome back;
    when its other end closes, whatever killed the coordinator, we leave as well."""
    # Ctrl-C reaches the whole foreground group; the coordinator decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            outcome = runner.run(_run(job, Progress(row), control))  # type: ignore[arg-type]
    except OSError as error:
        outcome = Outcome(f"the load worker could not go on: {error.strerror or error}", {})
    try:
        control.send(outcome)
    except OSError:
        return  # nobody is left to tell; the spool has it all


async def _run(job: Job, progress: Progress, control: Connection) -> Outcome:
    client = SocketClient(job.endpoint)
    header = CellHeader(job.cell, job.endpoint_kind, job.engine_start, job.worker)
    file = Spool(job.spool_path, header, job.secrets)
    spool = CellSpool(file)
    load = Load(job.cell, client, _source(job), progress, spool.finished, file.mark_window)
    spool.facts, spool.failed = load.facts, load.stop
    _stop_on_word_of(control, load)
    vitals = Vitals()
    background = [
        asyncio.create_task(_forever(0.1, lambda: spool.keep_current(client.in_flight()))),
        asyncio.create_task(_forever(_LAG_PROBE_S, vitals.probe)),
        asyncio.create_task(_forever(0.1, lambda: _tell(progress, client))),
    ]
    # What exists by now lives until the end: the collector need not walk it, nor anything, meanwhile.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        vitals.begin()
        await load.run()
        vitals.finish()
    finally:
        gc.enable()
        for task in background:
            task.cancel()
        await client.close()
        spool.close()
    return Outcome(load.problem, vitals.facts())


def _source(job: Job) -> RequestSource:
    tokenizer: Tokenizer | None = None
    if job.tokenizer_path is not None:
        from enginebench.catalog.tokenizers import load_tokenizer

        tokenizer = load_tokenizer(job.tokenizer_path)

    def make(seq: int) -> Request:
        return make_request(job.workload, job.seed, seq, tokenizer)

    def encode(request: Request) -> bytes:
        return encode_body(request, job.model, job.endpoint_kind, job.dialect, job.workload.sampling)

    return RequestSource(job.cell, make, encode)


class Vitals:
    """The client's own condition: loop lag, CPU, peak memory."""

    def __init__(self) -> None:
        self._lags_ns: list[int] = []
        self._due_ns = 0
        self._begin = self._end = (0, 0.0)

    def probe(self) -> None:
        now_ns = monotonic_ns()
        if self._due_ns:
            self._lags_ns.append(max(0, now_ns - self._due_ns))
        self._due_ns = now_ns + int(_LAG_PROBE_S * NS_PER_S)

    def begin(self) -> None:
        self._begin = (monotonic_ns(), _cpu_s())

    def finish(self) -> None:
        self._end = (monotonic_ns(), _cpu_s())

    def facts(self) -> dict[str, float | None]:
        lags = np.array(self._lags_ns, dtype=np.int64)
        return {
            "wall_s": seconds(self._end[0] - self._begin[0]),
            "cpu_s": self._end[1] - self._begin[1],
            "loop_lag_p99_s": float(np.quantile(lags, 0.99)) / NS_PER_S if len(lags) else None,
            "loop_lag_max_s": float(lags.max()) / NS_PER_S if len(lags) else None,
            "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _tell(progress: Progress, client: SocketClient) -> None:
    progress["chunks"] = client.chunks_read
    progress["beat_ns"] = monotonic_ns()


async def _forever(period_s: float, work: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(period_s)
        work()


def _stop_on_word_of(control: Connection, load: Load) -> None:
    """Stops the load when the coordinator says so or is gone."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        loop.remove_reader(control.fileno())
        try:
            problem = control.recv()
        except (EOFError, OSError):
            problem = "the coordinator is gone"
        load.stop(problem)

    loop.add_reader(control.fileno(), heard)
