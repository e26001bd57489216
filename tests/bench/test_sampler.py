"""The sampler: what it reads, when it looks, and how it ends."""

import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.scripted_server import scripted_server

from enginebench.bench.progress import Progress, shared_row
from enginebench.bench.sampler import Sampled, SamplerJob, sample, start_sampler
from enginebench.clock import monotonic_ns
from enginebench.model.plan import Cell, Histogram
from enginebench.store.folder import RunFolder, create
from enginebench.store.telemetry import read_telemetry
from enginebench.telemetry.prometheus import EngineMetrics
from enginebench.units import NS_PER_S

NAMES = {"requests_running": "v:running", "ttft_seconds": "v:ttft"}
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["enginebench.bench.sampler"])
LONG_NS = 3600 * NS_PER_S


@contextmanager
def engine(status: str = "200 OK") -> Iterator[Any]:
    """Serves one more request in flight, and one more observed TTFT, with every look."""

    def answer(connection: socket.socket, number: int) -> None:
        n = number + 1
        body = (
            f'v:running {n}\nv:ttft_bucket{{le="0.1"}} {n}\nv:ttft_bucket{{le="+Inf"}} {n}\nv:ttft_sum {n}\n'
        )
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    with scripted_server(answer) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create(tmp_path / "run", "r")


def job(folder: RunFolder, url: str | None, period_ns: int = LONG_NS) -> SamplerJob:
    path = folder.telemetry_spool(Cell("t", "concurrency", 1, 0, 0, 0, 1, None))
    return SamplerJob("t", path, EngineMetrics(url, NAMES) if url else None, os.getpid(), period_ns)


def wait_for(condition: Callable[[], Any], what: str) -> None:
    end_ns = monotonic_ns() + 60 * NS_PER_S
    while not condition():
        assert monotonic_ns() < end_ns, f"waited for {what}"
        os.sched_yield()


def looks(folder: RunFolder) -> int:
    return int(read_telemetry(folder).column("name").to_pylist().count("cpu_s"))


def test_it_reads_engine_host_client_and_its_own_cost_and_the_window_by_its_edges(folder):
    row = shared_row(CONTEXT)
    progress = Progress(row)
    with engine() as server:
        sampling = start_sampler(job(folder, server.url), row, CONTEXT)
        wait_for(lambda: len(server.requests) == 1, "the first look")
        progress["window_start_ns"] = monotonic_ns()
        wait_for(lambda: len(server.requests) == 2, "a look at the opening of the window")
        progress["window_end_ns"] = monotonic_ns()
        wait_for(lambda: len(server.requests) == 3, "a look at its close")
        sampled = sampling.stop()
    assert isinstance(sampled, Sampled)
    assert sampled.histograms == {"ttft_seconds": Histogram((0.1,), (1,), 1.0, 1)}
    assert 0 < sampled.cpu_s < sampled.wall_s
    frame = read_telemetry(folder).to_pandas()
    assert set(zip(frame.source, frame.name, strict=True)) == {
        ("engine", "requests_running"),
        ("host", "cpu_share"),
        ("host", "memory_used_bytes"),
        ("client", "client_cpu_s"),
        ("client", "client_rss_bytes"),
        ("sampler", "cpu_s"),
    } | {("gpu", name) for name in frame.name[frame.source == "gpu"]}
    assert frame.value[frame.name == "requests_running"].tolist() == [1, 2, 3]
    assert set(frame.target[frame.source == "host"].isna()) == {True}
    assert set(frame.target[frame.source == "engine"]) == {"t"}


def test_a_cell_that_ends_with_its_window_is_looked_at_once_more(folder):
    row = shared_row(CONTEXT)
    progress = Progress(row)
    with engine() as server:
        sampling = start_sampler(job(folder, server.url), row, CONTEXT)
        wait_for(lambda: len(server.requests) == 1, "the first look")
        progress["window_start_ns"] = monotonic_ns()
        wait_for(lambda: len(server.requests) == 2, "a look at the opening of the window")
        progress["window_end_ns"] = monotonic_ns()
        sampled = sampling.stop()
    assert sampled is not None
    assert sampled.histograms["ttft_seconds"].count == 1


def test_a_window_that_never_opened_has_no_histograms(folder):
    with engine() as server:
        sampling = start_sampler(job(folder, server.url), shared_row(CONTEXT), CONTEXT)
        wait_for(lambda: server.requests, "the first look")
        sampled = sampling.stop()
    assert sampled is not None
    assert sampled.histograms == {}


@pytest.mark.parametrize("metrics", ["refused", "none"])
def test_without_engine_metrics_the_rest_is_read_again_and_again(folder, metrics):
    with engine("404 Not Found") as server:
        url = server.url if metrics == "refused" else None
        sampling = start_sampler(job(folder, url, NS_PER_S // 100), shared_row(CONTEXT), CONTEXT)
        wait_for(lambda: looks(folder) >= 3, "three looks")
        assert sampling.stop() is not None
    assert "engine" not in read_telemetry(folder).column("source").to_pylist()


def test_a_killed_sampler_leaves_what_it_had_read_and_breaks_nothing(folder):
    sampling = start_sampler(job(folder, None), shared_row(CONTEXT), CONTEXT)
    wait_for(lambda: looks(folder), "the first look")
    sampling.process.kill()
    assert sampling.stop() is None
    assert looks(folder) == 1


def test_a_sampler_whose_coordinator_is_gone_leaves(folder):
    ours, theirs = multiprocessing.Pipe()
    process = CONTEXT.Process(target=sample, args=(job(folder, None), shared_row(CONTEXT), theirs))
    process.start()
    theirs.close()
    wait_for(lambda: looks(folder), "the first look")
    ours.close()
    process.join(30)
    assert process.exitcode == 0
    assert looks(folder) == 1
