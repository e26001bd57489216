from __future__ import annotations

import inspect
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from enginebench.catalog.launchers import load_launcher
from enginebench.cli.mock import mock
from enginebench.mock import read_truth


def command(*options: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "enginebench", "mock", *options]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_then_writes_the_truth_and_leaves_with_0(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    path = tmp_path / "truth.jsonl"
    with command("--port", "0", "--model", "tiny", "--base-ms", "1", "--truth", str(path)) as engine:
        assert engine.stdout is not None
        said = engine.stdout.readline()
        assert said.startswith("listening on http://127.0.0.1:")
        body = {"model": "tiny", "prompt": "a", "max_tokens": 3}
        answer = httpx.post(f"{said.split()[-1]}/completions", json=body, trust_env=False)
        engine.send_signal(signal_number)
        _, summary = engine.communicate(timeout=20)
    assert engine.returncode == 0
    assert summary.startswith("served 1 requests")
    assert [one.id for one in read_truth(path)] == [answer.json()["id"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-num-seqs", "0"], "max_num_seqs must be at least 1, not 0"),
        (["--base-ms", "-1"], "base_ms must be a number of at least 0"),
        (["--port", "70000"], "port must be between 0 and 65535"),
        (["--port", "0", "--truth", "/no/such/folder/t"], "cannot write the truth file /no/such/folder/t"),
        (["--port", "TAKEN"], "choose another port, or 0 for any free one"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(options: list[str], said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = str(holder.getsockname()[1])
        with command(*(taken if word == "TAKEN" else word for word in options)) as engine:
            _, complaint = engine.communicate(timeout=20)
    assert engine.returncode == 2
    assert said in complaint
    assert complaint.count("\n") == 1


def test_the_launcher_reaches_every_option_of_the_command() -> None:
    form = load_launcher("mock").forms["process"]
    words = {word for words in (form.command, *form.options.values()) for word in words}
    options = {"--" + name.replace("_", "-") for name in inspect.signature(mock).parameters}
    assert options == {word for word in words if word.startswith("--")}
