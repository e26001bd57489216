"""A whole run: every target on the same work, everything stored, whatever happens."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from types import FrameType
from typing import Any, Protocol

from enginebench import __version__
from enginebench.bench.agreement import answers, request_fields
from enginebench.bench.cell import CellRun, run_cell
from enginebench.bench.limits import ensure_descriptors
from enginebench.bench.progress import Progress
from enginebench.bench.targets import OpenTarget, api_key, opened, target_facts
from enginebench.catalog.plan import cells as planned_cells
from enginebench.catalog.scenario import plain_scenario
from enginebench.errors import Interrupted, TargetError, UserError
from enginebench.model.plan import Cell, CellResult
from enginebench.model.scenario import Scenario, Target
from enginebench.store.folder import RunFolder, locked, plain_cell
from enginebench.store.records import FORMAT_VERSION
from enginebench.store.recover import recover_spools
from enginebench.store.telemetry import merge_telemetry
from enginebench.telemetry.host import host_facts
from enginebench.telemetry.nvml import gpu_facts

_OF_LAST_START = ("base_url", "argv", "version", "flags", "image_digest", "shares_cores")
"""Facts of a start that stand with its target too."""


class Screen(Protocol):
    """Where a run tells how it goes."""

    def say(self, line: str) -> None: ...

    def watch(self, cell: Cell, progress: Progress) -> None: ...

    def ended(self, result: CellResult) -> None: ...


@dataclass(slots=True)
class Experiment:
    """One run while it lasts. `meta` is run.json, written after every cell."""

    scenario: Scenario
    folder: RunFolder
    screen: Screen
    meta: dict[str, Any]

    def save(self) -> None:
        self.folder.write_meta(self.meta)

    def target_meta(self, name: str) -> dict[str, Any]:
        return next(t for t in self.meta["targets"] if t["name"] == name)

    def fail(self, name: str, problem: str) -> None:
        self.target_meta(name)["problem"] = problem
        self.screen.say(f"{name}: {problem}")
        self.save()

    def add(self, result: CellResult) -> None:
        known = [c for c in self.meta["cells"] if c["cell"] != plain_cell(result)["cell"]]
        self.meta["cells"] = [*known, plain_cell(result)]
        self.save()
        self.screen.ended(result)


def scenario_hash(scenario: Scenario) -> str:
    canonical = json.dumps(plain_scenario(scenario), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def first_meta(scenario: Scenario, command: list[str]) -> dict[str, Any]:
    return {
        "format": FORMAT_VERSION,
        "enginebench": __version__,
        "name": scenario.name,
        "status": "running",
        "created_utc": _utc(),
        "finished_utc": None,
        "command": command,
        "scenario": plain_scenario(scenario),
        "scenario_sha256": scenario_hash(scenario),
        "hosts": [host_facts() | gpu_facts()],
        "targets": [target_facts(t) for t in scenario.targets],
        "cells": [],
    }


def resumed_meta(folder: RunFolder, scenario: Scenario) -> dict[str, Any]:
    """run.json of a run to be continued. Raises UserError when it was another scenario."""
    meta = folder.read_meta()
    if meta["scenario_sha256"] != scenario_hash(scenario):
        raise UserError(f"{folder.path} was made by another scenario; run it anew instead of with --resume")
    for target in meta["targets"]:
        target["problem"] = None
    return {**meta, "status": "running", "finished_utc": None}


def run(scenario: Scenario, folder: RunFolder, screen: Screen, meta: dict[str, Any]) -> str:
    """Runs all cells that `meta` does not list as finished. Returns the final status: done, failed
    (a target could not be measured to its end) or interrupted. Raises UserError before anything is
    sent, StorageError when the run folder cannot be written any more."""
    for target in scenario.targets:
        api_key(target)
    ensure_descriptors(max(level for load in scenario.load for level in load.levels))
    experiment = Experiment(scenario, folder, screen, meta)
    done = [c["cell"] for c in meta["cells"] if c["finished"]]
    todo = [cell for cell in planned_cells(scenario) if asdict(cell) not in done]
    with locked(folder) as ours:
        if not ours:
            raise UserError(f"another enginebench is writing to {folder.path}")
        experiment.save()
        status = _run_all(experiment, todo)
        merge_telemetry(folder)
        meta["status"], meta["finished_utc"] = status, _utc()
        experiment.save()
    return status


def _run_all(experiment: Experiment, todo: list[Cell]) -> str:
    with _first_signal_raises(experiment.screen):
        try:
            for name, block in groupby(todo, key=lambda cell: cell.target):
                _run_block(experiment, name, list(block))
        except Interrupted as stop:
            for result in stop.args:
                if isinstance(result, CellResult):
                    experiment.add(result)
            recover_spools(experiment.folder, experiment.meta)
            return "interrupted"
    return "failed" if any(t["problem"] for t in experiment.meta["targets"]) else "done"


def _run_block(experiment: Experiment, name: str, block: list[Cell]) -> None:
    """The cells of one target that follow each other: one start of its engine."""
    if experiment.target_meta(name)["problem"]:
        return  # it failed in an earlier repeat
    target = next(t for t in experiment.scenario.targets if t.name == name)
    log_path = experiment.folder.log_path(name)
    if target.launch:
        experiment.screen.say(f"{name}: starting {experiment.target_meta(name)['engine']}")
    try:
        with opened(target, experiment.scenario, log_path) as open_target:
            start = _note_start(experiment, target, open_target)
            _note_answers(experiment, open_target)
            around = CellRun(
                experiment.scenario, open_target, experiment.folder, start, experiment.screen.watch
            )
            for cell in block:
                result = run_cell(cell, around)
                experiment.add(result)
                if problem := open_target.problem():
                    raise TargetError(problem)
    except TargetError as error:
        experiment.fail(name, str(error))


def _note_start(experiment: Experiment, target: Target, open_target: OpenTarget) -> int | None:
    facts = experiment.target_meta(target.name)
    facts |= {key: open_target.facts[key] for key in _OF_LAST_START if key in open_target.facts}
    if target.launch is None:
        return None
    facts["starts"].append(open_target.facts)
    experiment.save()
    experiment.screen.say(f"{target.name}: ready after {open_target.facts['ready_s']:.1f} s")
    start: int = len(facts["starts"]) - 1
    return start


def _note_answers(experiment: Experiment, open_target: OpenTarget) -> None:
    """What tells whether targets can be compared; nothing where there is only one. Once a run."""
    facts, scenario = experiment.target_meta(open_target.target.name), experiment.scenario
    if len(scenario.targets) < 2 or "agreement" in facts:
        return
    facts["request_fields"] = request_fields(open_target, scenario.workload.sampling)
    facts["agreement"] = answers(open_target)
    experiment.save()


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@contextmanager
def _first_signal_raises(screen: Screen) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal end the run in order: what was measured is stored
    first. A second signal must not break that off; one that is ignored (nohup) stays ignored."""
    raised = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if raised:
            screen.say("saving what was measured ...")
            return
        raised = True
        raise Interrupted(f"stopped by {signal.Signals(number).name}")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    kept = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)
