"""One folder per run: created, kept current while the run lasts, loaded again by anyone."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from enginebench.errors import StorageError, UserError
from enginebench.model.plan import Cell, CellResult, Histogram, Window
from enginebench.store.records import FORMAT_VERSION

_REQUIRED = {"status", "scenario", "targets", "cells"}


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths inside one run folder, and run.json."""

    path: Path

    @property
    def meta_path(self) -> Path:
        return self.path / "run.json"

    @property
    def lock_path(self) -> Path:
        return self.path / "spool" / "lock"

    def records_path(self, cell: Cell, worker: int) -> Path:
        return self.path / "records" / f"{cell.file_stem}-w{worker}.parquet"

    def spool_path(self, cell: Cell, worker: int) -> Path:
        return self.path / "spool" / f"{cell.file_stem}-w{worker}.spool"

    def log_path(self, target: str) -> Path:
        return self.path / "logs" / f"{target}.txt"

    @property
    def telemetry_path(self) -> Path:
        return self.path / "telemetry.parquet"

    def telemetry_spool(self, cell: Cell) -> Path:
        return self.path / "spool" / f"{cell.file_stem}.telemetry"

    def telemetry_spools(self) -> list[Path]:
        return sorted((self.path / "spool").glob("*.telemetry"))

    def spools(self) -> list[Path]:
        return sorted((self.path / "spool").glob("*.spool"))

    def write_meta(self, meta: dict[str, Any]) -> None:
        write_atomically(self.meta_path, json.dumps(meta, indent=1, allow_nan=False).encode())

    def read_meta(self) -> dict[str, Any]:
        try:
            meta: dict[str, Any] = json.loads(self.meta_path.read_bytes())
        except FileNotFoundError:
            raise UserError(f"{self.path} is not a run folder: it has no run.json") from None
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot read {self.meta_path}: {error}") from error
        found = meta.get("format") if isinstance(meta, dict) else None
        if isinstance(found, int) and found > FORMAT_VERSION:
            raise StorageError(
                f"{self.path} has run format {found}, and this reads {FORMAT_VERSION}: upgrade enginebench"
            )
        if found != FORMAT_VERSION or not meta.keys() >= _REQUIRED:
            raise StorageError(f"{self.meta_path} is damaged, or not the run.json of an enginebench run")
        return meta


def write_atomically(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never half of one. Raises StorageError."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def create(parent: Path | None, name: str) -> RunFolder:
    """A new folder: `parent` itself when given and not yet in use, else reports/<utc-time>_<name>.

    A folder that already holds something is never written over.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = parent or Path("reports") / f"{stamp}_{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"
    try:
        if path.is_dir() and any(path.iterdir()):
            if parent is not None:
                raise UserError(f"{path} is not empty; give --out a new or empty folder")
            return create(path.with_name(f"{path.name}-{os.getpid()}"), name)
        for part in ("records", "spool", "logs"):
            (path / part).mkdir(parents=True)
    except OSError as error:
        raise UserError(f"cannot make the run folder {path}: {error.strerror}") from error
    return RunFolder(path)


@contextmanager
def locked(folder: RunFolder) -> Iterator[bool]:
    """Holds the run's lock; yields False when its run is alive and holds it. The kernel frees the
    lock when its holder dies, however that happens."""
    try:
        folder.lock_path.parent.mkdir(exist_ok=True)
        file = folder.lock_path.open("w")
    except OSError as error:
        raise StorageError(f"cannot write to {folder.path}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def cell_result(plain: dict[str, Any]) -> CellResult:
    """The inverse of `dataclasses.asdict` on a CellResult; keys of a newer version are left out.
    Raises StorageError when it is damaged."""
    try:
        window = plain["window"]
        histograms = {
            name: Histogram(**{**known, "le": tuple(known["le"]), "n": tuple(known["n"])})
            for name, known in plain.get("engine_histograms", {}).items()
        }
        ours = {field.name: plain[field.name] for field in fields(CellResult) if field.name in plain}
        return CellResult(
            **{
                **ours,
                "cell": Cell(**plain["cell"]),
                "window": Window(**window) if window else None,
                "engine_histograms": histograms,
            }
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"run.json is damaged: a cell lacks or misstates {error}") from error


def plain_cell(result: CellResult) -> dict[str, Any]:
    return asdict(result)
