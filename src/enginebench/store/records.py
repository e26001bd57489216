"""Records as Arrow columns and Parquet files: the public format of `records/*.parquet`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from enginebench.errors import StorageError
from enginebench.model.record import Chunks, Record

FORMAT_VERSION = 1
"""Of the run folder. Added columns keep it; a renamed or re-defined one raises it."""

_WORD = pa.dictionary(pa.int8(), pa.string())
_NAME = pa.dictionary(pa.int32(), pa.string())

# Chunks attribute -> (column, element type)
_CHUNK_COLUMNS = {
    "arrived_ns": ("chunk_arrived_ns", pa.int64()),
    "read_ns": ("chunk_read_ns", pa.int64()),
    "coalesced": ("chunk_coalesced", pa.bool_()),
    "n_bytes": ("chunk_bytes", pa.int32()),
    "n_chars": ("chunk_chars", pa.int32()),
    "n_tokens": ("chunk_tokens", pa.int32()),
    "choice": ("chunk_choice", pa.int16()),
    "kind": ("chunk_kind", _WORD),
}

_COLUMNS_OF_TYPE: dict[pa.DataType, tuple[str, ...]] = {
    _NAME: ("target", "error_kind", "finish_reason"),
    _WORD: ("load", "phase", "endpoint", "outcome", "http_version", "stamp_source", "token_source"),
    pa.string(): ("error_message", "prompt_sha256", "text", "server_timings", "ratelimit", "request_id"),
    pa.bool_(): ("retried", "connection_reused", "clock_stepped"),
    pa.int32(): ("repeat", "session", "turn", "worker", "engine_start", "status"),
    pa.float64(): ("level",),
}
_TYPES = {name: kind for kind, names in _COLUMNS_OF_TYPE.items() for name in names}


def _schema() -> pa.Schema:
    columns: list[pa.Field] = []
    for item in fields(Record):
        if item.name == "chunks":
            columns += [pa.field(name, pa.list_(kind)) for name, kind in _CHUNK_COLUMNS.values()]
        else:
            columns.append(pa.field(item.name, _TYPES.get(item.name, pa.int64())))
    return pa.schema(columns, metadata={"enginebench_format": str(FORMAT_VERSION)})


SCHEMA = _schema()
"""One row per request. Everything not named above is int64: nanoseconds and counts."""

_DICTIONARIES = [n for n in SCHEMA.names if pa.types.is_dictionary(SCHEMA.field(n).type)]
_STAMPS = ["chunk_arrived_ns.list.element", "chunk_read_ns.list.element"]


def table(records: Sequence[Record]) -> pa.Table:
    """Records as one Arrow table of `SCHEMA`."""
    columns: dict[str, pa.Array] = {}
    for item in fields(Record):
        if item.name != "chunks":
            columns[item.name] = pa.array(
                [getattr(r, item.name) for r in records], SCHEMA.field(item.name).type
            )
    for item in fields(Chunks):
        name = _CHUNK_COLUMNS[item.name][0]
        columns[name] = pa.array([getattr(r.chunks, item.name) for r in records], SCHEMA.field(name).type)
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


class RecordWriter:
    """Gathers records as Arrow columns, and writes one Parquet file when the block ends well.

    One row group: many readers, pandas among them, cannot read lists of dictionary words that are
    spread over several. The file gets its name when it is whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: list[Record] = []
        self._pending_chunks = 0
        self._tables: list[pa.Table] = [SCHEMA.empty_table()]

    def add(self, record: Record) -> None:
        self._pending.append(record)
        self._pending_chunks += len(record.chunks.kind)
        if self._pending_chunks >= 200_000 or len(self._pending) >= 20_000:
            self._gather()

    def _gather(self) -> None:
        self._tables.append(table(self._pending))
        self._pending, self._pending_chunks = [], 0

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._gather()
            _write(_one(self._tables), self._path)


def _write(records: pa.Table, path: Path) -> None:
    partial = path.with_suffix(f".parquet.partial-{os.getpid()}")
    try:
        pq.write_table(
            records,
            partial,
            row_group_size=max(1, len(records)),
            compression="zstd",
            use_dictionary=[*_DICTIONARIES, "chunk_kind.list.element"],
            column_encoding=dict.fromkeys(_STAMPS, "DELTA_BINARY_PACKED"),
        )
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_records(paths: Sequence[Path]) -> pa.Table:
    """All records of a run in one table; an empty one when there are no files. Columns that a file
    of an older version lacks are null; columns this version does not know are kept out."""
    tables = []
    for path in paths:
        raw = _read(path)
        columns = [
            raw.column(f.name).cast(f.type) if f.name in raw.column_names else pa.nulls(len(raw), f.type)
            for f in SCHEMA
        ]
        tables.append(pa.table(columns, schema=SCHEMA))
    if not tables:
        return SCHEMA.empty_table()
    return _one(tables)


def n_rows(path: Path) -> int:
    """Rows of a records file. Raises StorageError when it is none."""
    return len(_read(path))


def _read(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            groups = [file.read_row_group(i) for i in range(file.num_row_groups)]
            return _one(groups) if groups else file.schema_arrow.empty_table()
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def _one(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()
