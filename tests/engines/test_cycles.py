"""llama.cpp twenty times started and stopped, and twenty times robbed of its owner: nothing adds up."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest
from tests.cli.conftest import PROGRAM
from tests.cli.test_faults import run_faults
from tests.engines.conftest import LlamaSpec
from tests.engines_unit.waiting import wait_until

from enginebench.engines import orphans
from enginebench.engines.process import alive, start, stop

pytestmark = pytest.mark.engine

N_CYCLES = 20
LAUNCH = [
    *PROGRAM, "launch", "llamacpp", "--via", "wheel", "--model", "{engines}/models/tiny-llama.gguf",
    "--port", "0", "--set", "max_num_seqs=2", "--set", "max_model_len=512", "--set", "threads=1",
]  # fmt: skip


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """In the environment of everything that the test starts."""
    mark = uuid4().hex
    monkeypatch.setenv("CYCLES", mark)
    return mark


def marked(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"CYCLES={mark}".encode() in words:
            found.append(int(path.parent.name))
    return found


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_starting_and_stopping_it_leaves_no_trace(llamacpp: LlamaSpec, temporary: Path, mark: str) -> None:
    descriptors = sorted(os.listdir("/proc/self/fd"))
    for _ in range(N_CYCLES):
        engine = start(llamacpp())
        assert alive(engine)
        assert engine.pid in marked(mark)
        stop(engine)
        assert marked(mark) == []
        assert not listens(engine.port)
        assert list(temporary.iterdir()) == []
    assert psutil.Process().children(recursive=True) == []
    assert sorted(os.listdir("/proc/self/fd")) == descriptors


def test_killing_the_tool_leaves_no_trace(llamacpp: LlamaSpec, temporary: Path, mark: str) -> None:
    llamacpp()  # fails when it is not installed
    for _ in range(N_CYCLES):
        with subprocess.Popen(LAUNCH, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tool:
            assert tool.stderr is not None
            ready = next(line for line in tool.stderr if line.startswith("ready after"))
            port = httpx.URL(ready.split()[-1]).port
            assert port is not None
            assert listens(port)
            assert len(marked(mark)) >= 3  # the tool, the guard, the engine
            tool.send_signal(signal.SIGKILL)
        wait_until(lambda: marked(mark) == [], "all of its processes are gone")
        assert not listens(port)
        assert list(temporary.iterdir()) == []
    assert not orphans.find().processes


def test_killing_a_run_under_load_leaves_no_trace(
    llamacpp: LlamaSpec, temporary: Path, mark: str, tmp_path: Path
) -> None:
    llamacpp()
    words = ["run", "llamacpp-cpu", "--out", str(tmp_path / "run"), "--set", "load.0.warmup=0s"]
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tool:
        spools = tmp_path / "run" / "spool"
        wait_until(
            lambda: any(path.stat().st_size for path in spools.glob("*.spool")), "requests are answered"
        )
        tool.send_signal(signal.SIGKILL)
    wait_until(lambda: marked(mark) == [], "all of its processes are gone")
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    assert not listens(httpx.URL(meta["targets"][0]["base_url"]).port or 0)
    assert list(temporary.iterdir()) == []


def test_an_engine_that_is_deaf_to_sigterm_is_measured_and_ended_before_the_next_one(tmp_path: Path) -> None:
    # Here and not among the other faults, since it takes its whole grace of 15 s.
    ran = run_faults(tmp_path, ["deaf", "ok"])
    assert ran.code == 0, ran.err
    assert {*ran.outcomes("deaf"), *ran.outcomes("ok")} == {"ok"}
