"""`enginebench launch` as a person uses it: started, ready, Ctrl-C, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cli.conftest import PROGRAM
from tests.engines_unit.waiting import wait_until

MOCK = ("launch", "mock", "--model", "m", "--port", "0")


def start(*words: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(cwd)},
    )  # fmt: skip


def wait_for_line(process: subprocess.Popen[str], start_of_line: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(start_of_line):
            return line
    pytest.fail(f"it ended without saying {start_of_line!r}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_engine_is_launched_and_stopped_with_nothing_left(number: signal.Signals, tmp_path: Path) -> None:
    process = start(*MOCK, cwd=tmp_path)
    url = wait_for_line(process, "ready after").split()[-1]
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/v1")
    tree = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert err.endswith("stopped\n")
    assert f"listening on {url}" in out
    assert tree
    assert not any(child.is_running() for child in tree)
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_ends_by_itself_is_an_error_and_its_log_is_kept_where_asked(tmp_path: Path) -> None:
    process = start(*MOCK, "--log", "mock.txt", cwd=tmp_path)
    wait_for_line(process, "Ctrl-C")
    (engine,) = [p for p in psutil.Process(process.pid).children(recursive=True) if "mock" in p.cmdline()]
    engine.kill()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "mock ended by signal 9" in err
    assert "Traceback" not in err
    assert (tmp_path / "mock.txt").read_text() == out


def test_the_log_of_a_launch_that_failed_stays_where_the_error_says(tmp_path: Path) -> None:
    words = '[sh, -c, "echo out of memory; exit 3", sh, "{port}"]'
    process = start("launch", "custom", "--model", "m", "--set", f"command={words}", cwd=tmp_path)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert out == "out of memory\n"
    (log,) = tmp_path.glob("enginebench-*/engine.txt")
    assert str(log) in err
    assert log.read_text() == out


def test_a_command_that_is_not_here_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    process = start("launch", "custom", "--model", "m", "--set", 'command=[no-such, "{port}"]', cwd=tmp_path)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert err.endswith("No such file or directory: no-such; is it installed, and on PATH?\n")
    assert list(tmp_path.iterdir()) == []


def test_killing_the_program_takes_the_engine_with_it(tmp_path: Path) -> None:
    process = start(*MOCK, cwd=tmp_path)
    wait_for_line(process, "Ctrl-C")
    tree = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    wait_until(lambda: not any(child.is_running() for child in tree), "the engine's end")


def test_the_command_is_printed_and_nothing_started(enginebench, tmp_path):
    ended = enginebench(
        "launch", "vllm", "--model", "some/model", "--gpus", "1", "--set", "max_num_seqs=8", "--print"
    )
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[:2] == ["CUDA_DEVICE_ORDER=PCI_BUS_ID \\", "CUDA_VISIBLE_DEVICES=1 \\"]
    assert ended.out.endswith("--port 8000 \\\n  --max-num-seqs 8\n")
    assert list(tmp_path.iterdir()) == []


def test_the_script_is_printed_with_how_it_was_made(enginebench):
    ended = enginebench("launch", "mock", "--model", "m", "--port", "81", "--script")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("#!/usr/bin/env bash\n")
    assert "# Made by: enginebench launch mock --model m --port 81 --script\n" in ended.out
    assert "PORT=${PORT:-81}\n" in ended.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["vlm"], "did you mean vllm"),
        (["vllm"], "`model` is missing"),
        (["vllm", "--model", "m", "--via", "docker"], "--via: vllm has no form 'docker'"),
        (["vllm", "--model", "m", "--set", "max_seqs=3"], "--set max_seqs: vllm via process has no option"),
        (["vllm", "--model", "m", "--set", "max_num_seqs"], "--set takes NAME=VALUE"),
        (["vllm", "--model", "m", "--gpus", "all"], "--gpus: a GPU is named by its index or its UUID"),
        (["vllm", "--model", "m", "--set", "env.HF_TOKEN=x"], "holds a secret"),
        (["vllm", "--model", "m", "--set", "extra_args=[--api-key, x]"], "holds a secret"),
        (["custom", "--model", "m"], "custom needs the words that start it"),
        (["mock", "--model", "m", "--print", "--script"], "one of the two"),
        (["mock", "--model", "m", "--log", "no/such/file"], "there is no folder no/such"),
    ],
    ids=" ".join,
)
def test_mistakes_are_one_clear_line(enginebench, words, says):
    ended = enginebench("launch", *words)
    assert ended.code == 2
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_scenario_starts_any_command_and_keeps_what_it_ran_on(enginebench, tmp_path):
    words = [sys.executable, "-m", "enginebench", "mock", "--port", "{port}", "--model", "{served_name}"]
    target = {
        "name": "mine",
        "launch": "custom",
        "model": "m",
        "options": {"command": words},
        "readiness": {"health": "/v1/models", "models": False},
        "hardware": "the laptop",
        "gpus": [],
    }
    scenario = {
        "targets": [target],
        "workload": {"input_tokens": 8, "output_tokens": 4},
        "load": {"levels": [2], "warmup": "0s", "requests": 4},
    }
    (tmp_path / "any.yaml").write_text(json.dumps(scenario))
    ended = enginebench("run", "any.yaml", "--out", "run")
    assert ended.code == 0, ended.err
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    assert meta["targets"][0]["hardware"] == "the laptop"
    assert meta["scenario"]["targets"][0]["gpus"] == []
    assert meta["status"] == "done"


def test_a_launch_without_an_engine_says_where_they_are_listed(enginebench: Any) -> None:
    ended = enginebench("launch")
    assert ended.code == 2
    assert ended.err == "enginebench: name an engine: `enginebench list engines` shows them all\n"
