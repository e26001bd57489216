"""A whole run: every target on the same work, everything stored, whatever happens."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

from enginebench import __version__
from enginebench.bench.agreement import answers, request_fields
from enginebench.bench.cell import CellRun, prepare_workers, run_cell, worker_folder
from enginebench.bench.interrupts import Interrupts
from enginebench.bench.limits import ensure_descriptors
from enginebench.bench.progress import Progress
from enginebench.bench.sweeping import swept
from enginebench.bench.targets import OpenTarget, check, opened, target_facts
from enginebench.catalog.plan import cells as planned_cells
from enginebench.catalog.scenario import plain_scenario
from enginebench.engines import orphans
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
    interrupts: Interrupts

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
        "hosts": [_host()],
        "targets": [target_facts(t) for t in scenario.targets],
        "cells": [],
    }


def _host() -> dict[str, Any]:
    return host_facts() | gpu_facts()


def resumed_meta(folder: RunFolder, scenario: Scenario) -> dict[str, Any]:
    """run.json of a run to be continued. Raises UserError when it was another scenario."""
    meta = folder.read_meta()
    if meta["scenario_sha256"] != scenario_hash(scenario):
        raise UserError(
            f"{folder.path} was made by another scenario; --resume takes the same scenario and the same "
            "options (--set, --only, --url ...) as the run that it continues"
        )
    for target in meta["targets"]:
        target["problem"] = None
    host = _host()
    hosts = [known for known in meta["hosts"] if known["boot_id"] != host["boot_id"]]
    return {**meta, "status": "running", "finished_utc": None, "hosts": [*hosts, host]}


def prepare(scenario: Scenario, main_module: str) -> None:
    """What can be refused before a folder is made: keys, what is not installed, descriptors.
    `main_module` is the program's own (`prepare_workers`). Raises UserError."""
    for target in scenario.targets:
        check(target)
    ensure_descriptors(max(level for load in scenario.load for level in load.levels))
    # Only now: workers inherit the raised limit from the process that they are forked from.
    prepare_workers(main_module)


def run(
    scenario: Scenario, folder: RunFolder, screen: Screen, meta: dict[str, Any], interrupts: Interrupts
) -> str:
    """Runs all cells that `meta` does not list as finished; call `prepare` first. Returns the final
    status: done, failed (a target could not be measured to its end) or interrupted. Raises
    StorageError when the run folder cannot be written any more."""
    experiment = Experiment(scenario, folder, screen, meta, interrupts)
    kept = [
        c["cell"]
        for c in meta["cells"]
        if c["finished"] and folder.records_path(Cell(**c["cell"]), 0).exists()
    ]
    todo = [cell for cell in planned_cells(scenario) if asdict(cell) not in kept]
    with locked(folder) as ours, swept(worker_folder()):
        if not ours:
            raise UserError(f"another enginebench is writing to {folder.path}")
        experiment.save()
        _tell_of_orphans(experiment)
        status = _run_all(experiment, todo)
        merge_telemetry(folder)
        meta["status"], meta["finished_utc"] = status, _utc()
        experiment.save()
    return status


def _tell_of_orphans(experiment: Experiment) -> None:
    """They would share the machine with what is measured."""
    if any(target.launch for target in experiment.scenario.targets) and (left := orphans.find()):
        experiment.screen.say(
            f"left behind by an earlier run: {left}; to end that: enginebench launch --clean"
        )


def _run_all(experiment: Experiment, todo: list[Cell]) -> str:
    try:
        for name, block in groupby(todo, key=lambda cell: cell.target):
            _run_block(experiment, name, list(block))
    except Interrupted:
        recover_spools(experiment.folder, experiment.meta)
        return "interrupted"
    broken = any(target["problem"] for target in experiment.meta["targets"])
    return "failed" if broken or not all(c["finished"] for c in experiment.meta["cells"]) else "done"


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
                experiment.scenario,
                open_target,
                experiment.folder,
                start,
                watch=experiment.screen.watch,
                keep=experiment.add,
                interrupts=experiment.interrupts,
            )
            for cell in block:
                run_cell(cell, around)
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
