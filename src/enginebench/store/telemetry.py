"""telemetry.parquet: what was read beside the load, in long form.

While a cell runs its readings go to an Arrow stream in spool/, one batch for each look, so that a
crash of anything loses none that was taken; the streams are merged when the run ends.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from enginebench.errors import StorageError
from enginebench.model.telemetry import Sample
from enginebench.store.folder import RunFolder

_WORD = pa.dictionary(pa.int8(), pa.string())
_NAME = pa.dictionary(pa.int32(), pa.string())

SCHEMA = pa.schema(
    {
        "at_ns": pa.int64(),
        "target": _NAME,
        "source": _WORD,
        "device": pa.string(),
        "name": _NAME,
        "value": pa.float64(),
    }
)
"""One row per reading."""

_STREAM_SCHEMA = pa.schema(
    {f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in SCHEMA}
)
"""In a stream words are plain: a dictionary would be repeated with every batch."""


class TelemetryWriter:
    """Appends readings to the stream of one cell; use as a context manager."""

    def __init__(self, path: Path) -> None:
        # Unbuffered: when `add` returns, the kernel has it.
        self._file = path.open("wb", buffering=0)
        self._stream = pa.ipc.new_stream(self._file, _STREAM_SCHEMA)

    def add(self, samples: Sequence[Sample]) -> None:
        columns = [[getattr(s, f.name) for s in samples] for f in fields(Sample)]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _STREAM_SCHEMA, strict=True)]
        self._stream.write_batch(pa.record_batch(arrays, schema=_STREAM_SCHEMA))

    def __enter__(self) -> TelemetryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self._file.close()


def read_telemetry(folder: RunFolder) -> pa.Table:
    """All readings of a run in order of time, those of cells in flight included; empty when there
    are none. Raises StorageError when the file cannot be read."""
    tables = [_read_stream(path) for path in folder.telemetry_spools()]
    if folder.telemetry_path.exists():
        try:
            tables.append(pq.ParquetFile(folder.telemetry_path).read().cast(_STREAM_SCHEMA))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StorageError(f"cannot read {folder.telemetry_path}: {error}") from error
    if not tables:
        return SCHEMA.empty_table()
    return pa.concat_tables(tables).sort_by("at_ns").cast(SCHEMA).unify_dictionaries().combine_chunks()


def merge_telemetry(folder: RunFolder) -> None:
    """Makes telemetry.parquet of what it holds and the streams, which it then deletes. The caller
    holds the run's lock. Raises StorageError, and then keeps the streams."""
    streams = folder.telemetry_spools()
    if not streams:
        return
    partial = folder.telemetry_path.with_suffix(".parquet.partial")
    try:
        pq.write_table(
            read_telemetry(folder),
            partial,
            compression="zstd",
            use_dictionary=["target", "source", "device", "name"],
            column_encoding={"at_ns": "DELTA_BINARY_PACKED"},
        )
        os.replace(partial, folder.telemetry_path)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder.telemetry_path}: {error.strerror or error}; the readings stay in spool/: "
            "make room, then run `enginebench report` on the folder"
        ) from error
    for path in streams:
        path.unlink()


def _read_stream(path: Path) -> pa.Table:
    """As far as it got: a writer that was killed leaves a batch cut short."""
    batches = []
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
            while True:
                batches.append(reader.read_next_batch())
    except (StopIteration, OSError, ValueError, pa.ArrowException):
        pass
    return pa.Table.from_batches(batches, schema=_STREAM_SCHEMA)
