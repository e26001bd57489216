"""Engines in containers, on a `docker` that plays both client and daemon. No real daemon was asked."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engines_unit import fake_docker, fake_engine
from tests.engines_unit.fake_docker import Daemon
from tests.engines_unit.waiting import wait_until

from enginebench.engines import orphans
from enginebench.engines.marks import RUN
from enginebench.engines.process import EngineSpec, alive, exited, running, start, stop
from enginebench.errors import EngineExited, TargetError
from enginebench.units import NS_PER_S

NAME = "enginebench-fake-{port}"

OWNER = """
import signal, sys
from pathlib import Path
from enginebench.engines.process import EngineSpec, start
log, name, *argv = sys.argv[1:]
engine = start(EngineSpec("fake", argv, Path(log), "fake", container=name, grace_s=0.5))
print(engine.container, engine._owned.guard_pid, flush=True)
signal.pause()
"""


def argv_of(image: str) -> list[str]:
    return ["docker", "run", "--rm", "--name", NAME, "--publish", "127.0.0.1:{port}:8000", image]


def spec_of(image: str, folder: Path) -> EngineSpec:
    return EngineSpec(
        "fake", argv_of(image), folder / "log.txt", "fake",
        container=NAME, grace_s=0.5, start_timeout_ns=30 * NS_PER_S,
    )  # fmt: skip


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    fake_docker.install(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv(fake_docker.SOCKET, str(tmp_path / "socket"))
    with fake_docker.daemon(tmp_path / "socket", fake_engine.__file__) as daemon:
        yield daemon


def removals(docker: Daemon) -> list[str]:
    return [words[-1] for words in docker.asked if words[0] == "rm"]


def test_an_engine_in_a_container_serves_and_is_removed(docker: Daemon, tmp_path: Path) -> None:
    with running(spec_of("ok", tmp_path)) as engine:
        assert engine.container is not None
        assert engine.container.startswith(f"enginebench-fake-{engine.port}-")
        assert engine.argv[engine.argv.index("--name") + 1] == engine.container
        assert [*docker.containers] == [engine.container]
    assert docker.containers == {}
    assert removals(docker) == [engine.container]


def test_two_starts_never_share_a_containers_name(docker: Daemon, tmp_path: Path) -> None:
    with running(spec_of("ok", tmp_path)) as first, running(spec_of("ok", tmp_path)) as second:
        assert first.container != second.container


def test_a_container_deaf_to_sigterm_is_removed_by_force(docker: Daemon, tmp_path: Path) -> None:
    with running(spec_of("deaf", tmp_path)):
        pass
    wait_until(lambda: docker.containers == {}, "the container is gone")


def test_a_container_whose_client_was_killed_is_removed(docker: Daemon, tmp_path: Path) -> None:
    engine = start(spec_of("ok", tmp_path))
    os.kill(engine.pid, signal.SIGKILL)
    wait_until(lambda: not alive(engine), "the guard reports the client's death")
    assert "ended by signal 9" in str(exited(engine))
    stop(engine)
    wait_until(lambda: docker.containers == {}, "the container is gone")


def test_a_container_whose_guard_was_killed_is_removed_by_us(docker: Daemon, tmp_path: Path) -> None:
    engine = start(spec_of("ok", tmp_path))
    os.kill(engine._owned.guard_pid, signal.SIGKILL)
    stop(engine)
    wait_until(lambda: docker.containers == {}, "the container is gone")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_container_does_not_outlive_its_owner(
    number: signal.Signals, docker: Daemon, tmp_path: Path
) -> None:
    with owner(tmp_path) as process:
        assert process.stdout is not None
        name, _ = process.stdout.readline().split()
        assert name in docker.containers
        process.send_signal(number)
    wait_until(lambda: docker.containers == {}, "the container is gone")


def owner(folder: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", OWNER, str(folder / "log.txt"), NAME, *argv_of("ok")]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_a_container_that_lost_owner_and_guard_is_found_and_removed(docker: Daemon, tmp_path: Path) -> None:
    with owner(tmp_path) as process:
        assert process.stdout is not None
        name, guard = process.stdout.readline().split()
        assert name not in orphans.find().containers  # its owner lives
        os.kill(int(guard), signal.SIGKILL)
        process.kill()
    found = orphans.find()
    assert found.containers == (name,)
    assert f"container {name}" in str(found)
    assert f"docker rm --force --volumes {name}" in found.ending()
    assert orphans.end(found) == ()
    wait_until(lambda: docker.containers == {}, "the container is gone")
    assert orphans.find().containers == ()


def test_a_container_that_cannot_be_removed_is_told_with_the_command(docker: Daemon, tmp_path: Path) -> None:
    engine = start(spec_of("deaf", tmp_path))
    docker.refuses_removal = True
    with pytest.raises(
        TargetError, match=rf"device busy\); run: docker rm --force --volumes {engine.container}"
    ):
        stop(engine)


def test_an_image_that_is_missing_is_told_with_what_helps(docker: Daemon, tmp_path: Path) -> None:
    with pytest.raises(
        EngineExited, match=r"^fake: the container image cannot be had; check the option `image`"
    ):
        start(spec_of("acme/none", tmp_path))
    assert docker.containers == {}


def test_a_client_without_a_daemon_is_one_clear_line(
    docker: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(fake_docker.SOCKET, str(tmp_path / "nobody"))
    with pytest.raises(TargetError) as caught:
        start(spec_of("ok", tmp_path))
    assert str(caught.value) == (
        "fake cannot be started: the Docker client is here, but no Docker daemon answers it; start the "
        "daemon (`sudo systemctl start docker`), set DOCKER_HOST, or use `via: process`"
    )
    assert not (tmp_path / "log.txt").exists()  # nothing was started


def test_a_machine_without_docker_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TargetError) as caught:
        start(spec_of("ok", tmp_path))
    assert str(caught.value) == (
        "fake cannot be started: there is no `docker` on PATH; install Docker, or use `via: process`"
    )
    assert orphans.find().containers == ()


@pytest.mark.skipif(
    shutil.which("docker") is None and "CI" not in os.environ, reason="there is no Docker client here"
)
def test_what_the_real_client_says_without_a_daemon_is_understood(tmp_path: Path) -> None:
    spec = replace(spec_of("ok", tmp_path), env={"DOCKER_HOST": f"unix://{tmp_path}/none"})
    with pytest.raises(TargetError, match="no Docker daemon answers it") as caught:
        start(spec)
    assert "\n" not in str(caught.value)


def test_the_mark_reaches_the_label_and_the_engines_environment(docker: Daemon, tmp_path: Path) -> None:
    with running(spec_of("ok", tmp_path)) as engine:
        label = engine.argv[engine.argv.index("--label") + 1]
        environment = Path(f"/proc/{engine.pid}/environ").read_bytes().split(b"\0")
        assert label.startswith(f"{RUN}=")
        assert label.encode() in environment
