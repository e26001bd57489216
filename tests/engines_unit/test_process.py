"""Life and death of engines, on fakes that do everything wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from tests.engines_unit import fake_engine
from tests.engines_unit.conftest import SpecOf
from tests.engines_unit.waiting import Notes, wait_for_exit, wait_until

from enginebench.engines.ports import free_port
from enginebench.engines.process import EngineSpec, alive, exited, running, start, stop
from enginebench.errors import EngineExited, EngineNotReady, TargetError
from enginebench.units import NS_PER_MS

OWNER = """
import os, signal, sys
from pathlib import Path
from enginebench.engines.process import EngineSpec, start
fake, mode, notes, log, *fork = sys.argv[1:]
argv = [sys.executable, "-S", fake, "{port}", mode, notes]
start(EngineSpec("fake", argv, Path(log), "fake", grace_s=0.2))
child = os.fork() if fork else "ready"
if child:
    print(child, flush=True)
signal.pause()
"""


def owner_of(mode: str, notes: Notes, log: Path, *fork: str) -> subprocess.Popen[str]:
    """Another process that starts an engine, so that it can be killed."""
    argv = [sys.executable, "-c", OWNER, fake_engine.__file__, mode, str(notes.path), str(log), *fork]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_an_engine_is_ready_when_it_has_completed_a_request(spec_of: SpecOf, notes: Notes) -> None:
    with running(spec_of("ok", notes)) as engine:
        assert alive(engine)
        assert exited(engine) is None
        assert engine.base_url == f"http://127.0.0.1:{engine.port}/v1"
        assert engine.pid == notes.pid("up")
        assert str(engine.port) in engine.argv
        assert engine.first_token_s is not None
        assert engine.first_completion_s is not None
        assert 0 < engine.ready_s < engine.first_token_s <= engine.first_completion_s
        assert engine.started_utc.endswith("Z")
    assert not listens(engine.port)


def test_a_ctrl_c_in_the_terminal_reaches_neither_guard_nor_engine(spec_of: SpecOf) -> None:
    with running(spec_of("ok")) as engine:
        ours = os.getsid(0)
        assert os.getsid(engine._owned.guard_pid) == engine._owned.guard_pid != ours
        assert os.getsid(engine.pid) == engine.pid != ours


def test_stopping_twice_is_stopping_once(spec_of: SpecOf) -> None:
    engine = start(spec_of("ok"))
    stop(engine)
    stop(engine)
    assert not alive(engine)
    assert exited(engine) is None  # it did not end by itself


def test_an_error_inside_the_block_still_stops_the_engine(spec_of: SpecOf) -> None:
    block = running(spec_of("ok"))
    engine = block.__enter__()
    assert block.__exit__(ZeroDivisionError, ZeroDivisionError(), None) is False
    assert not alive(engine)


def test_a_fixed_port_is_used_and_can_be_used_again(spec_of: SpecOf) -> None:
    port = free_port("127.0.0.1")
    for _ in range(2):
        with running(spec_of("ok", port=port)) as engine:
            assert engine.port == port


def test_an_engine_that_exits_at_once_is_reported_with_its_last_words(spec_of: SpecOf) -> None:
    spec = spec_of("exits")
    spec.log_path.write_text("words of an earlier start\n")
    with pytest.raises(EngineExited) as caught:
        start(spec)
    assert caught.value.exit_status == 1
    assert caught.value.exit_code == 3
    assert caught.value.log_tail == "  loading weights\n  torch.OutOfMemoryError: CUDA out of memory"
    assert caught.value.cause.startswith("out of GPU memory; ")
    assert str(caught.value).startswith("fake: out of GPU memory; ")
    assert "\nfake ended with exit code 1 before" in str(caught.value)
    assert str(spec.log_path) in str(caught.value)


def test_an_engine_that_crashes_is_reported_with_its_signal(spec_of: SpecOf) -> None:
    with pytest.raises(EngineExited, match=r"^fake ended by signal 11 before") as caught:
        start(spec_of("crashes"))
    assert caught.value.cause == ""  # nothing is guessed


def test_a_cause_far_above_the_last_lines_is_still_found(tmp_path: Path) -> None:
    code = "print('[Errno 28] No space left on device'); print('  frame' * 9 * 999); raise SystemExit(1)"
    spec = EngineSpec("fake", [sys.executable, "-S", "-c", code, "{port}"], tmp_path / "log.txt", "m")
    with pytest.raises(EngineExited, match=r"^fake: a disk is full; ") as caught:
        start(spec)
    assert "No space left" not in caught.value.log_tail


def test_a_cause_of_an_earlier_start_is_not_taken_for_this_ones(spec_of: SpecOf) -> None:
    spec = spec_of("crashes")
    spec.log_path.write_text("OSError: [Errno 28] No space left on device\n" * 9)
    with pytest.raises(EngineExited) as caught:
        start(spec)
    assert caught.value.cause == ""


def test_a_cause_that_only_the_answer_to_a_completion_tells_is_found(spec_of: SpecOf) -> None:
    with pytest.raises(EngineNotReady, match=r"^fake: out of GPU memory; ") as caught:
        start(spec_of("out-of-memory", start_timeout_ns=700 * NS_PER_MS))
    assert "\nfake was not ready after" in str(caught.value)


def test_an_engine_that_dies_in_its_first_completion_is_reported_as_dead(spec_of: SpecOf) -> None:
    with pytest.raises(EngineExited, match="an illegal memory access"):
        start(spec_of("dies-completing"))


def test_an_engine_that_hangs_is_given_up_at_the_start_timeout(spec_of: SpecOf, notes: Notes) -> None:
    with pytest.raises(EngineNotReady) as caught:
        start(spec_of("hangs", notes, start_timeout_ns=700 * NS_PER_MS))
    assert caught.value.last_answer == "connection refused"
    assert "raise `start_timeout`" in str(caught.value)
    wait_for_exit(notes.pid("up"))


def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    spec = EngineSpec("mine", ["no-such-server", "--port", "{port}"], tmp_path / "log.txt", "m")
    with pytest.raises(
        TargetError, match="mine cannot be started: No such file or directory: no-such-server"
    ):
        start(spec)


def test_the_environment_reaches_the_engine_with_the_port_filled_in(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.environ['WHERE'] + ' ' + os.environ['HOME'])"
    spec = EngineSpec(
        "fake", [sys.executable, "-c", code], tmp_path / "log.txt", "m", port=free_port("127.0.0.1"),
        env={"WHERE": "127.0.0.1:{port}", "HOME": "/elsewhere"},
    )  # fmt: skip
    with pytest.raises(EngineExited, match=f"127.0.0.1:{spec.port} /elsewhere"):
        start(spec)


def test_an_engine_that_prints_its_key_does_not_put_it_into_the_error(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import sys; sys.exit(str(sys.argv))", "--api-key", "swordfish", "{port}"]
    headers = {"Authorization": "Bearer opensesame"}
    with pytest.raises(EngineExited) as caught:
        start(EngineSpec("fake", [*argv, "opensesame"], tmp_path / "log.txt", "m", headers=headers))
    assert "swordfish" not in str(caught.value)
    assert "opensesame" not in str(caught.value)
    assert "'--api-key', '***'" in str(caught.value)


def test_an_engine_started_with_its_signals_blocked_still_hears_sigterm(
    spec_of: SpecOf, notes: Notes
) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        engine = start(spec_of("ok", notes))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    os.kill(engine.pid, signal.SIGTERM)
    wait_for_exit(engine.pid)
    stop(engine)


def test_a_taken_port_is_refused_with_its_holder(spec_of: SpecOf) -> None:
    with fake_engine.serving("ok") as older:
        spec = spec_of("ok", port=older.server_port)
        with pytest.raises(
            TargetError, match=rf"port {older.server_port} is taken by process {os.getpid()} \("
        ):
            start(spec)
        assert older.asked.total() == 0
        assert not spec.log_path.exists()  # nothing was started


def test_a_stranger_that_answers_on_the_port_is_not_taken_for_the_engine(
    spec_of: SpecOf, notes: Notes
) -> None:
    port = free_port("127.0.0.1")
    done = threading.Event()

    def take_port_once_the_engine_runs() -> None:
        notes.pid("up")
        with fake_engine.serving("ok", port):
            done.wait()

    stranger = threading.Thread(target=take_port_once_the_engine_runs)
    stranger.start()
    try:
        with pytest.raises(TargetError, match=rf"does not own port {port}: process {os.getpid()}"):
            start(spec_of("hangs", notes, port=port))
    finally:
        done.set()
        stranger.join()


def test_an_engine_that_is_deaf_to_sigterm_is_killed(spec_of: SpecOf, notes: Notes) -> None:
    with running(spec_of("deaf", notes, grace_s=0.2)):
        pass
    wait_for_exit(notes.pid("up"))


def test_a_daemon_that_left_the_session_is_killed_with_its_engine(spec_of: SpecOf, notes: Notes) -> None:
    with running(spec_of("daemon", notes, grace_s=0.2)):
        daemon = notes.pid("daemon")
        assert os.getsid(daemon) != os.getsid(notes.pid("up"))
    wait_for_exit(daemon)


def test_an_engine_that_dies_under_load_is_noticed_and_its_daemon_killed(
    spec_of: SpecOf, notes: Notes
) -> None:
    with running(spec_of("daemon", notes, grace_s=0.2)) as engine:
        os.kill(engine.pid, signal.SIGKILL)
        wait_until(lambda: not alive(engine), "the guard reports the death")
        error = exited(engine)
        assert error is not None
        assert error.exit_status == -signal.SIGKILL
        wait_for_exit(notes.pid("daemon"))  # before we ask for it


def test_a_log_that_floods_keeps_an_engine_from_nothing(spec_of: SpecOf) -> None:
    spec = spec_of("floods")
    with running(spec) as engine:
        assert alive(engine)
    assert "line 39999" in spec.log_path.read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_engine_does_not_outlive_its_owner(number: signal.Signals, notes: Notes, tmp_path: Path) -> None:
    with owner_of("daemon", notes, tmp_path / "log.txt") as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        engine, daemon = notes.pid("up"), notes.pid("daemon")
        owner.send_signal(number)
    wait_for_exit(engine)
    wait_for_exit(daemon)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_owner_goes_while_the_engine_starts(
    number: signal.Signals, notes: Notes, tmp_path: Path
) -> None:
    with owner_of("hangs", notes, tmp_path / "log.txt") as owner:
        engine = notes.pid("up")
        owner.send_signal(number)
    wait_for_exit(engine)


def test_a_forked_child_that_keeps_the_pipe_open_does_not_keep_the_engine(
    notes: Notes, tmp_path: Path
) -> None:
    with owner_of("ok", notes, tmp_path / "log.txt", "fork") as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        owner.kill()
        try:
            wait_for_exit(notes.pid("up"))
            assert psutil.pid_exists(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_an_engine_does_not_outlive_its_guard(spec_of: SpecOf) -> None:
    with running(spec_of("deaf")) as engine:
        os.kill(engine._owned.guard_pid, signal.SIGKILL)
        wait_for_exit(engine.pid)
        wait_until(lambda: not alive(engine), "the guard's pipe closes")
        assert "for an unknown reason" in str(exited(engine))
