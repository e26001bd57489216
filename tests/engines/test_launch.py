"""llama.cpp by the script that `enginebench launch --script` makes, and by the program itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from tests.engines.conftest import LlamaSpec

from enginebench.engines.ports import free_port

pytestmark = pytest.mark.engine

LAUNCH = [
    sys.executable, "-m", "enginebench", "launch", "llamacpp", "--via", "wheel",
    "--model", "{engines}/models/tiny-llama.gguf",
    "--set", "max_num_seqs=2", "--set", "max_model_len=512", "--set", "threads=1",
]  # fmt: skip


def completes(base_url: str) -> bool:
    body = {"model": "tiny-llama", "prompt": "the water", "max_tokens": 3, "ignore_eos": True}
    answer = httpx.post(f"{base_url}/completions", json=body, timeout=60, trust_env=False)
    return bool(answer.json()["usage"]["completion_tokens"] == 3)


def listens(url: str) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", httpx.URL(url).port or 0)) == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_script_serves_and_leaves_nothing(
    number: signal.Signals, status: int, llamacpp: LlamaSpec, tmp_path: Path
) -> None:
    llamacpp()  # fails when it is not installed
    script = tmp_path / "launch.sh"
    script.write_bytes(subprocess.run([*LAUNCH, "--script"], check=True, stdout=subprocess.PIPE).stdout)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {**os.environ, "PORT": str(free_port("127.0.0.1")), "TMPDIR": str(temporary)}
    process = subprocess.Popen(["bash", script], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert "ready after" in ready, (tmp_path / "llamacpp.log").read_text()
    url = next(word for word in ready.split() if word.startswith("http"))
    assert completes(url)
    tree = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == status
    assert not any(child.is_running() for child in tree)
    assert not listens(url)
    assert list(temporary.iterdir()) == []


def test_the_program_serves_and_leaves_nothing(llamacpp: LlamaSpec, tmp_path: Path) -> None:
    llamacpp()
    process = subprocess.Popen(
        [*LAUNCH, "--port", "0", "--log", "log.txt"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    ready = next(line for line in process.stderr if line.startswith("ready after"))
    url = ready.split()[-1]
    assert completes(url)
    tree = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == (tmp_path / "log.txt").read_text()
    assert not any(child.is_running() for child in tree)
    assert not listens(url)
