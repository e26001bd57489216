"""The installed program as a person runs it: a process, a terminal's worth of output, an exit code."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from enginebench.batching.scheduler import SchedulerConfig
from enginebench.batching.step_time import StepTime
from enginebench.mock import MockConfig, MockServer, running

PROGRAM = (sys.executable, "-m", "enginebench")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def enginebench(tmp_path: Path) -> Callable[..., Ended]:
    def run(*words: object, timeout_s: float = 60) -> Ended:
        done = subprocess.run(
            [*PROGRAM, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=timeout_s
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def mock() -> Iterator[MockServer]:
    """A quick mock engine, shared: 2 ms a token."""
    step = StepTime(base_ms=2.0, per_seq_us=10.0, per_ktoken_us=1.0, prefill_us_per_token=2.0)
    with running(MockConfig(scheduler=SchedulerConfig(max_num_seqs=16, step_time=step))) as server:
        yield server
