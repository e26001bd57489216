"""Engines that lost their owner and their guard at once: found, told, ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.engines_unit import fake_engine
from tests.engines_unit.conftest import SpecOf
from tests.engines_unit.orphaned import kill_guard, without_owner
from tests.engines_unit.waiting import Notes, wait_for_exit

from enginebench.engines import orphans
from enginebench.engines.marks import RUN, owner_is_gone, run_id
from enginebench.engines.process import running


def pids(found: orphans.Orphans) -> set[int]:
    return {process.pid for process in found.processes}


def test_a_running_engine_is_no_orphan(spec_of: SpecOf, notes: Notes) -> None:
    with running(spec_of("daemon", notes, grace_s=0.2)) as engine:
        assert not {engine.pid, notes.pid("daemon"), engine._owned.guard_pid} & pids(orphans.find())


def test_a_daemon_that_lost_owner_and_guard_is_found_and_ended(notes: Notes, tmp_path: Path) -> None:
    with without_owner(notes, tmp_path / "log.txt") as (daemon, guard):
        assert daemon not in pids(orphans.find())  # a guard that lives is about to end it
        kill_guard(guard, notes)
        found = orphans.find()
        assert daemon in pids(found)
        ours = orphans.Orphans(tuple(p for p in found.processes if p.pid == daemon), ())
        assert str(ours).startswith(f"process {daemon} ({sys.executable} -S {fake_engine.__file__}"[:60])
        assert ours.ending() == f"kill -9 {daemon}"
        assert orphans.end(ours, grace_s=0.2) == ()
        wait_for_exit(daemon)
        assert daemon not in pids(orphans.find())


def test_ending_what_has_ended_by_itself_hits_nobody_else() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    orphan = psutil.Process(process.pid)
    process.wait()
    assert orphans.end(orphans.Orphans((orphan,), ())) == ()
    assert str(orphans.Orphans((orphan,), ())) == ""


def test_nothing_found_is_false_and_silent() -> None:
    nothing = orphans.Orphans((), ())
    assert not nothing
    assert (str(nothing), nothing.ending(), orphans.end(nothing)) == ("", "", ())


def test_a_run_is_alive_as_long_as_its_process() -> None:
    assert not owner_is_gone(run_id())
    world, pid, ticks = run_id().rsplit("-", 2)
    assert owner_is_gone(f"{world}-{pid}-{int(ticks) + 1}")  # the pid was used again


@pytest.mark.parametrize("run", ["", "x", "1-2", "another-boot-1-2-3", "-".join(["a"] * 8)])
def test_a_run_that_cannot_be_judged_from_here_is_not_taken_for_dead(run: str) -> None:
    assert not owner_is_gone(run)


def test_a_run_in_another_container_is_not_taken_for_dead() -> None:
    world, pid, ticks = run_id().rsplit("-", 2)
    boot, namespace = world.rsplit("-", 1)
    assert not owner_is_gone(f"{boot}-{int(namespace) + 1}-{pid}-{int(ticks) + 1}")


def test_the_mark_survives_a_program_that_renames_itself(spec_of: SpecOf) -> None:
    with running(spec_of("ok")) as engine:
        words = Path(f"/proc/{engine.pid}/environ").read_bytes().split(b"\0")
    assert f"{RUN}={run_id()}".encode() in words
    assert b"SPT_NOENV=1" in words  # setproctitle's own switch; it is not installed here
