"""Reading a run back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from enginebench.analysis.summary import summarise
from enginebench.model.plan import CellResult
from enginebench.model.run import Run
from enginebench.store.folder import RunFolder, cell_result
from enginebench.store.records import read_records
from enginebench.store.recover import recover_dead_run
from enginebench.store.telemetry import read_telemetry


def load(folder: str | os.PathLike[str]) -> Run:
    """Reads a run. A run that died is first recovered from its spool; a live one gives what its
    finished cells hold.

    Raises UserError when the folder is not a run, StorageError when it cannot be read.
    """
    run_folder = RunFolder(Path(folder))
    run_folder.read_meta()
    recover_dead_run(run_folder)
    meta = run_folder.read_meta()
    return Run(
        folder=run_folder.path,
        meta=meta,
        cells=tuple(_with_records(run_folder, cell_result(c)) for c in meta["cells"]),
        records=read_records(sorted((run_folder.path / "records").glob("*.parquet"))),
        telemetry=read_telemetry(run_folder),
        derive=summarise,
    )


def _with_records(folder: RunFolder, result: CellResult) -> CellResult:
    """A finished cell whose records are gone is not a finished cell any more."""
    path = folder.records_path(result.cell, 0)
    if not result.finished or path.exists():
        return result
    return replace(result, finished=False, problem=f"its records are gone: {path}")
