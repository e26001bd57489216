"""One cell: a worker process put to work, watched, and its spool made into records."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import forkserver, util
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from enginebench.bench.interrupts import Interrupts
from enginebench.bench.progress import Progress, shared_row
from enginebench.bench.sampler import Sampled, SamplerJob, start_sampler
from enginebench.bench.targets import OpenTarget
from enginebench.bench.worker import Job, Outcome, work
from enginebench.clock import monotonic_ns
from enginebench.errors import Interrupted, StorageError
from enginebench.model.plan import Cell, CellResult, Window
from enginebench.model.scenario import Scenario
from enginebench.store.folder import RunFolder
from enginebench.store.recover import decode_spool
from enginebench.units import NS_PER_S

_TICK_S = 0.25
_STUCK_AFTER_S = 60.0
_LEAVE_S = 10.0
"""How long a worker that was told to stop may take to write its spool and go."""


def prepare_workers(main_module: str) -> None:
    """Starts the server process that workers are forked from, with their imports done: a worker is
    then up in milliseconds. `main_module` is the program's own, which every fork would import."""
    multiprocessing.set_forkserver_preload(
        ["enginebench.bench.worker", "enginebench.bench.sampler", main_module]
    )
    # Ctrl-C reaches the whole foreground group; what it means is for the coordinator to decide.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


def worker_folder() -> Path:
    """The temporary folder in which that server process listens; it is removed when we end."""
    return Path(util.get_temp_dir())


@dataclass(frozen=True, slots=True)
class CellRun:
    """What a cell needs besides itself."""

    scenario: Scenario
    opened: OpenTarget
    folder: RunFolder
    engine_start: int | None
    watch: Callable[[Cell, Progress], None]
    """Called a few times a second while the load runs."""
    keep: Callable[[CellResult], None]
    """Takes the result when its records are stored."""
    interrupts: Interrupts


def run_cell(cell: Cell, around: CellRun) -> None:
    """Runs one cell to its end, stores its records and hands its result over.

    A cell that breaks off (the engine died, a signal) is stored as far as it got. Only while the
    load runs can a signal break it off; Interrupted is raised when everything is stored.
    """
    interrupted: Interrupted | None = None
    with around.interrupts.held():
        context = multiprocessing.get_context("forkserver")
        row = shared_row(context)
        ours, theirs = Pipe()
        before = around.opened.counters()
        process = context.Process(target=work, args=(_job(cell, around), row, theirs), daemon=True)
        process.start()
        theirs.close()
        sampling = start_sampler(_sampler_job(cell, around, process), row, context)
        progress = Progress(row)
        try:
            with around.interrupts.heard():
                outcome = _watch(process, ours, progress, cell, around)
        except Interrupted as signalled:
            interrupted = signalled
            outcome = _stop(process, ours, "interrupted")
        sampled = sampling.stop()
        after = {} if interrupted else around.opened.counters()
        growth = {name: after[name] - before[name] for name in after if name in before}
        result = replace(_stored(cell, around, progress, outcome), engine_counters=growth)
        around.keep(_with_samples(result, sampled))
    if interrupted is not None:
        raise interrupted


def _with_samples(result: CellResult, sampled: Sampled | None) -> CellResult:
    if sampled is None:
        return result
    cost: dict[str, float | None] = {
        "sampler_cpu_s": sampled.cpu_s,
        "sampler_wall_s": sampled.wall_s,
    }
    return replace(result, client=result.client | cost, engine_histograms=sampled.histograms)


def _job(cell: Cell, around: CellRun) -> Job:
    scenario, opened = around.scenario, around.opened
    return Job(
        cell=cell,
        endpoint=opened.endpoint,
        endpoint_kind=opened.target.endpoint,
        model=opened.model,
        dialect=opened.dialect,
        workload=scenario.workload,
        tokenizer_path=scenario.workload.tokenizer,
        seed=scenario.seed,
        spool_path=around.folder.spool_path(cell, 0),
        engine_start=around.engine_start,
        secrets=opened.secrets,
    )


def _sampler_job(cell: Cell, around: CellRun, worker: BaseProcess) -> SamplerJob:
    assert worker.pid is not None  # it has been started
    path = around.folder.telemetry_spool(cell)
    return SamplerJob(cell.target, path, around.opened.metrics, worker.pid)


def _watch(
    process: BaseProcess, control: Connection, progress: Progress, cell: Cell, around: CellRun
) -> Outcome:
    while not (ready := wait([control, process.sentinel], timeout=_TICK_S)):
        around.watch(cell, progress)
        problem = around.opened.problem() or _stuck(progress)
        if problem is not None:
            return _stop(process, control, problem)
    if control in ready:
        try:
            outcome: Outcome = control.recv()
        except EOFError:
            pass
        else:
            process.join(_LEAVE_S)
            around.watch(cell, progress)
            return outcome
    process.join(_LEAVE_S)
    return Outcome(f"the load worker died (exit {process.exitcode})", {})


def _stuck(progress: Progress) -> str | None:
    """A worker that was stopped, or that swaps, tells nothing any more."""
    beat_ns = progress["beat_ns"]
    silent_s = (monotonic_ns() - beat_ns) / NS_PER_S if beat_ns else 0.0
    return f"the load worker has not moved for {silent_s:.0f} s" if silent_s > _STUCK_AFTER_S else None


def _stop(process: BaseProcess, control: Connection, problem: str) -> Outcome:
    try:
        control.send(problem)
        outcome = control.recv() if control.poll(_LEAVE_S) else None
    except (EOFError, OSError):
        outcome = None
    process.join(1.0)
    if process.is_alive():
        process.kill()
        process.join()
    return outcome or Outcome(problem, {})


def _stored(cell: Cell, around: CellRun, progress: Progress, outcome: Outcome) -> CellResult:
    spool_path = around.folder.spool_path(cell, 0)
    if outcome.problem is None and not spool_path.exists():
        raise StorageError(f"{spool_path} is gone: something else removed it while the load ran")
    if spool_path.exists():
        records_path = around.folder.records_path(cell, 0)
        decode_spool(spool_path, records_path, around.opened.secrets, around.scenario.keep_text)
    start_ns, end_ns = progress["window_start_ns"], progress["window_end_ns"]
    return CellResult(
        cell=cell,
        window=Window(start_ns, end_ns or None) if start_ns else None,
        engine_start=around.engine_start,
        finished=outcome.problem is None,
        problem=outcome.problem,
        client=outcome.client,
    )
