"""A launch as text: held by golden files, by shellcheck, and run for real on engines that misbehave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.catalog.launch_cases import COMMITTED, every_form, full_launch, launch_of
from tests.engines_unit import fake_engine
from tests.engines_unit.waiting import Notes, wait_for_exit
from tests.report.golden import FOLDER, assert_golden

import enginebench
from enginebench.catalog.launch_script import launch_script, shell_command
from enginebench.catalog.scenario import LaunchOptions
from enginebench.engines.ports import free_port

REPOSITORY = Path(__file__).parents[2]
SECRET = "sk-value-of-the-key-itself"


@pytest.fixture(autouse=True)
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as scripts/install-engines makes it, and a key in the environment."""
    for name in ("llamacpp", "transformers", "vllm"):
        python = tmp_path / "engines" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    monkeypatch.setenv("ENGINEBENCH_ENGINES", str(tmp_path / "engines"))
    monkeypatch.setenv("API_KEY", SECRET)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    return tmp_path / "engines"


def portable(text: str, engines: Path) -> str:
    places = {
        str(engines): "ENGINES",
        str(Path(enginebench.__file__).parent): "PACKAGE",
        sys.executable: "PYTHON",
    }
    for place, name in places.items():
        text = text.replace(place, name)
    return text


@pytest.mark.parametrize(("engine", "form"), [*every_form()])
def test_the_printed_command_of_every_launcher(engine: str, form: str, engines: Path) -> None:
    text = shell_command(full_launch(engine, form))
    assert_golden(f"launch/{engine}-{form}.txt", portable(text, engines) + "\n")
    assert SECRET not in text


def test_every_golden_command_is_one_of_a_launcher() -> None:
    names = {f"{engine}-{form}.txt" for engine, form in every_form()}
    assert {path.name for path in (FOLDER / "launch").iterdir()} == names


@pytest.mark.parametrize("name", [*COMMITTED])
def test_a_committed_script_is_what_the_launcher_makes(name: str) -> None:
    path = REPOSITORY / "launchers" / f"{name}.sh"
    text = launch_script(launch_of(COMMITTED[name], open_port=True))
    if os.environ.get("ENGINEBENCH_GOLDEN") == "write":
        path.write_text(text)
        path.chmod(0o755)
    assert path.read_text() == text
    assert path.stat().st_mode & 0o111


@pytest.mark.parametrize(("engine", "form"), [*every_form()])
def test_shellcheck_finds_nothing_in_any_script(engine: str, form: str, tmp_path: Path) -> None:
    text = launch_script(full_launch(engine, form))
    assert SECRET not in text
    script = tmp_path / "launch.sh"
    script.write_text(text)
    checker = ["shellcheck"] if shutil.which("shellcheck") else ["bash", "-n"]
    done = subprocess.run([*checker, script], capture_output=True, text=True)
    assert done.stdout + done.stderr == ""


def test_a_printed_command_reads_back_as_the_words_that_are_run(tmp_path: Path) -> None:
    odd = ["it's", 'a "b"', "$HOME", "`x`", "back\\slash", "two\nlines", "{port}", ""]
    own = ["printf", "%s\\0", "--port={port}", *odd]
    launch = launch_of(LaunchOptions("custom", "m", port=81, settings=[f"command={json.dumps(own)}"]))
    argv = [word.replace("{port}", "81") for word in own]
    assert list(launch.made.argv) == argv
    done = subprocess.run(["bash", "-c", shell_command(launch)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == argv[2:]


@contextmanager
def running_script(text: str, folder: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    """The script while the block lasts; killed with all it started if a test fails."""
    script = folder / "launch.sh"
    script.write_text(text)
    process = subprocess.Popen(
        ["bash", script], cwd=folder, env={**os.environ, "TMPDIR": str(folder), **env},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else ():
            child.kill()
        process.kill()
        process.communicate()


@contextmanager
def started(mode: str, folder: Path, *notes: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """The script of a fake engine, running."""
    command = [sys.executable, "-S", fake_engine.__file__, "{port}", mode, *notes]
    options = LaunchOptions("custom", "fake", settings=[f"command={json.dumps(command)}"])
    text = launch_script(launch_of(options, open_port=True))
    settings = {"PORT": str(free_port("127.0.0.1")), "GRACE_S": "3", **env}
    with running_script(text, folder, **settings) as process:
        yield process


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_script_serves_until_it_is_told_to_stop_and_leaves_nothing(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    with started("ok", tmp_path) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert "ready after" in ready
        assert "http://127.0.0.1:" in ready
        tree = psutil.Process(process.pid).children(recursive=True)
        assert tree
        process.send_signal(number)
        assert process.wait(30) == status
        assert not any(child.is_running() for child in tree)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["custom.log", "engines", "launch.sh"]


def test_a_deaf_engine_and_its_daemon_are_killed_after_the_grace(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    with started("daemon", tmp_path, str(notes.path), GRACE_S="1") as process:
        assert process.stdout is not None
        assert "ready after" in process.stdout.readline()
        pids = notes.pid("up"), notes.pid("daemon")
        process.terminate()
        assert process.wait(30) == 143
        for pid in pids:
            wait_for_exit(pid)
    notes.close()


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("exits", "the engine ended before it was healthy"),
        ("unhealthy", "not healthy after"),
        ("cannot-complete", "not able to complete after"),
        ("error-in-stream", "not able to complete after"),
        ("unfinished", "not able to complete after"),
        ("refuses", "the engine refuses a completion"),
    ],
)
def test_a_script_says_why_the_engine_is_not_ready_and_leaves_nothing(
    mode: str, says: str, tmp_path: Path
) -> None:
    with started(mode, tmp_path, START_TIMEOUT_S="2") as process:
        out, err = process.communicate(timeout=30)
        assert process.returncode == 1
        assert out == ""
        assert says in err


def test_a_script_refuses_a_port_that_is_taken(tmp_path: Path) -> None:
    with (
        fake_engine.serving("ok") as server,
        started("ok", tmp_path, PORT=str(server.server_port)) as process,
    ):
        _, err = process.communicate(timeout=30)
        assert process.returncode == 1
        assert f"port {server.server_port} is taken" in err
        assert server.asked == {}
        assert not (tmp_path / "custom.log").exists()


FAKE_DOCKER = """#!/bin/sh
echo "$@" >>"$0.calls"
[ "$1" = run ] || exit 0
exec {python} -S {engine} "$PORT" ok
"""


def test_the_script_of_a_container_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(FAKE_DOCKER.format(python=sys.executable, engine=fake_engine.__file__))
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    options = LaunchOptions("tgi", "some/model", "container", gpus="GPU-12345678")
    script = launch_script(launch_of(options, open_port=True))
    port = free_port("127.0.0.1")
    with running_script(script, tmp_path, PORT=str(port)) as process:
        assert process.stdout is not None
        assert "ready after" in process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 143
    calls = (tmp_path / "bin" / "docker.calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["info", "run", "stop", "rm"]
    assert f"--name enginebench-tgi-{port} --publish 127.0.0.1:{port}:80" in calls[1]
    assert '--gpus="device=GPU-12345678"' in calls[1]
    assert "--env=HF_TOKEN " in calls[1]
    assert SECRET not in calls[1]
    assert calls[3] == f"rm --force enginebench-tgi-{port}"


def test_the_script_of_a_container_says_that_there_is_no_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    script = launch_script(launch_of(LaunchOptions("tgi", "some/model", "container"), open_port=True))
    with running_script(script, tmp_path, PORT=str(free_port("127.0.0.1"))) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "no Docker daemon answers" in err
