"""The fault table: one unattended run over engines that each fail in their own way, and a sound one
between and after them. Whatever a target does, the others are measured, and nothing is left behind.

An engine that is deaf to SIGTERM is measured like a sound one but takes its whole grace to end; that
row stands in tests/engines/test_cycles.py.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pandas as pd
import pytest
from tests.cli.conftest import PROGRAM
from tests.engines_unit import fake_engine
from tests.engines_unit.orphaned import kill_guard, without_owner
from tests.engines_unit.waiting import Notes, wait_until

import enginebench as package

LAUNCHER = {
    "id": "fake",
    "title": "Fake",
    "forms": {
        "process": {
            "command": [sys.executable, "-S", fake_engine.__file__, "{port}", "{mode}"],
            "defaults": {"mode": "ok"},
        }
    },
}
FAILING = ["exits", "hangs", "cannot-complete", "dies-under-load"]
SOUND = ["ok", "polite-daemon", "floods", "ok-again"]
N_REQUESTS = 120


@dataclass(frozen=True)
class FaultRun:
    code: int
    err: str
    meta: dict[str, Any]
    frame: pd.DataFrame
    folder: Path
    orphan: int | None = None
    """Pid of what an earlier run had left behind."""

    def target(self, name: str) -> dict[str, Any]:
        (found,) = [target for target in self.meta["targets"] if target["name"] == name]
        return dict(found)

    def outcomes(self, name: str) -> list[str]:
        return list(self.frame[self.frame.target == name].outcome)


def scenario(launcher: Path, modes: list[str]) -> dict[str, Any]:
    def target(name: str) -> dict[str, Any]:
        timeout = "1s" if name in ("hangs", "cannot-complete") else "30s"
        options = {"mode": name.removesuffix("-again")}
        return {
            "name": name,
            "launch": str(launcher),
            "model": "fake",
            "options": options,
            "start_timeout": timeout,
        }

    return {
        "name": "faults",
        "targets": [target(mode) for mode in modes],
        "workload": {"input_tokens": 8, "output_tokens": 2},
        "load": [{"kind": "concurrency", "levels": [4], "warmup": "0s", "requests": N_REQUESTS}],
    }


def run_faults(folder: Path, modes: list[str]) -> FaultRun:
    """Runs the scenario, and fails when anything that came of it is still there afterwards."""
    (folder / "fake.json").write_text(json.dumps(LAUNCHER))
    (folder / "faults.json").write_text(json.dumps(scenario(folder / "fake.json", modes)))
    temporary, mark = folder / "temporary", uuid4().hex
    temporary.mkdir()
    done = subprocess.run(
        [*PROGRAM, "run", "faults.json", "--out", "run"],
        cwd=folder, capture_output=True, text=True, timeout=120,
        env={**os.environ, "TMPDIR": str(temporary), "FAULT_RUN": mark},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    # Everything that it started, and all that these started, has inherited the mark.
    wait_until(lambda: marked(mark) == [], "all of its processes are gone")
    assert list(temporary.iterdir()) == []
    run = package.load(folder / "run")
    ran = FaultRun(done.returncode, done.stdout + done.stderr, run.meta, run.frame(), folder / "run")
    for target in ran.meta["targets"]:
        assert not (target["base_url"] and listens(target["base_url"])), target["name"]
    return ran


def marked(mark: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"FAULT_RUN={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def listens(url: str) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", httpx.URL(url).port or 0)) == 0


@contextmanager
def orphaned(folder: Path) -> Iterator[int]:
    notes = Notes(folder / "notes")
    with closing(notes), without_owner(notes, folder / "log.txt") as (daemon, guard):
        kill_guard(guard, notes)
        yield daemon


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> FaultRun:
    modes = [
        "exits",
        "ok",
        "hangs",
        "cannot-complete",
        "dies-under-load",
        "polite-daemon",
        "floods",
        "ok-again",
    ]
    with orphaned(tmp_path_factory.mktemp("orphan")) as orphan:
        return replace(run_faults(tmp_path_factory.mktemp("faults"), modes), orphan=orphan)


def test_what_an_earlier_run_left_is_named_with_what_ends_it(ran: FaultRun) -> None:
    (line,) = [line for line in ran.err.splitlines() if line.startswith("left behind by an earlier run: ")]
    assert f"process {ran.orphan} ({sys.executable}" in line
    assert line.endswith("; to end that: enginebench launch --clean")


def test_the_run_goes_on_to_its_end_and_says_that_targets_failed(ran: FaultRun) -> None:
    assert ran.code == 3, ran.err
    assert ran.meta["status"] == "failed"
    assert {target["name"] for target in ran.meta["targets"] if target["problem"]} == set(FAILING)


@pytest.mark.parametrize("name", SOUND)
def test_every_sound_target_is_measured_whatever_came_before_it(name: str, ran: FaultRun) -> None:
    assert ran.outcomes(name) == ["ok"] * N_REQUESTS
    assert ran.target(name)["starts"][0]["ready_s"] > 0


def test_an_engine_that_exits_at_once_is_told_with_its_cause(ran: FaultRun) -> None:
    problem = ran.target("exits")["problem"]
    assert problem.startswith("exits: out of GPU memory; ")
    assert "ended with exit code 1" in problem
    assert ran.outcomes("exits") == []


def test_an_engine_that_hangs_before_it_is_ready_is_given_up(ran: FaultRun) -> None:
    problem = ran.target("hangs")["problem"]
    assert problem.startswith("hangs was not ready after 1 s (last answer: connection refused)")
    assert "waiting for a download" in problem
    assert ran.outcomes("hangs") == []


def test_an_engine_that_is_healthy_but_cannot_complete_is_not_loaded(ran: FaultRun) -> None:
    problem = ran.target("cannot-complete")["problem"]
    assert "cannot-complete was not ready after" in problem
    assert "500 to a completion" in problem
    assert ran.outcomes("cannot-complete") == []


def test_an_error_event_and_done_of_a_dying_engine_are_never_a_success(ran: FaultRun) -> None:
    problem = ran.target("dies-under-load")["problem"]
    assert problem.startswith("dies-under-load: out of GPU memory; ")
    rows = ran.frame[ran.frame.target == "dies-under-load"]
    good = rows[rows.outcome == "ok"]
    assert 0 < len(good) < fake_engine.LAST_REQUEST
    # What the engine told with [DONE] at its end, in the records as it was: a failure with its words.
    (told,) = rows[rows.error_message.astype(str).str.contains("engine is dead")].itertuples()
    assert told.outcome not in ("ok", "empty")
    assert told.status == 200
    assert len(rows) > len(good) + 1  # and those after it
    assert set(good.finish_reason) == {"length"}


def test_a_daemon_that_an_engine_forks_ends_with_it(ran: FaultRun) -> None:
    # That it is gone is checked for the run as a whole.
    assert ran.target("polite-daemon")["problem"] is None


def test_a_log_that_floods_is_kept_and_hinders_nothing(ran: FaultRun) -> None:
    assert "line 39999" in (ran.folder / "logs" / "floods.txt").read_text()
