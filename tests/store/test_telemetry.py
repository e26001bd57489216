"""Readings on disk: whole whatever ends their writer."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from enginebench.errors import StorageError
from enginebench.model.plan import Cell
from enginebench.model.telemetry import Sample
from enginebench.store.folder import RunFolder, create
from enginebench.store.telemetry import SCHEMA, TelemetryWriter, merge_telemetry, read_telemetry


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create(tmp_path / "run", "r")


def cell(level: int) -> Cell:
    return Cell("t", "concurrency", level, 0, 0, 0, 1, None)


def host(at_ns: int, value: float = 0.5) -> Sample:
    return Sample(at_ns, None, "host", None, "cpu_share", value)


def written(folder: RunFolder, level: int, *looks: list[Sample]) -> Path:
    path = folder.telemetry_spool(cell(level))
    with TelemetryWriter(path) as writer:
        for look in looks:
            writer.add(look)
    return path


def test_a_run_without_readings_has_an_empty_table_of_the_schema(folder):
    assert read_telemetry(folder).equals(SCHEMA.empty_table())
    merge_telemetry(folder)
    assert not folder.telemetry_path.exists()


def test_readings_come_back_as_they_were_in_order_of_time(folder):
    gpu = Sample(7, None, "gpu", "GPU-1", "power_w", 312.5)
    engine = Sample(3, "t", "engine", None, "requests_running", 16.0)
    written(folder, 2, [gpu])
    written(folder, 1, [engine], [host(5)])
    rows = read_telemetry(folder).to_pylist()
    assert [Sample(**row) for row in rows] == [engine, host(5), gpu]


def test_merging_moves_the_streams_into_the_file_and_adds_to_what_it_held(folder):
    written(folder, 1, [host(1)])
    merge_telemetry(folder)
    written(folder, 2, [host(2)])
    merge_telemetry(folder)
    assert folder.telemetry_spools() == []
    assert pq.ParquetFile(folder.telemetry_path).read().schema.equals(SCHEMA)
    assert read_telemetry(folder).column("at_ns").to_pylist() == [1, 2]


def test_a_stream_cut_anywhere_gives_every_look_that_is_whole(folder):
    path = written(folder, 1, [host(1)], [host(2)], [host(3)])
    whole = path.read_bytes()
    found = []
    for end in (*range(0, len(whole), 13), len(whole)):
        path.write_bytes(whole[:end])
        found.append(read_telemetry(folder).column("at_ns").to_pylist())
    assert found == sorted(found)
    assert [looks for looks in ([], [1], [1, 2], [1, 2, 3]) if looks in found] == [[], [1], [1, 2], [1, 2, 3]]
    assert all(looks == [1, 2, 3][: len(looks)] for looks in found)


def test_what_was_added_is_on_disk_before_the_writer_ends(folder):
    path = folder.telemetry_spool(cell(1))
    with TelemetryWriter(path) as writer:
        writer.add([host(1)])
        assert read_telemetry(folder).column("at_ns").to_pylist() == [1]


def test_a_file_that_is_not_parquet_is_named(folder):
    folder.telemetry_path.write_bytes(b"no parquet")
    with pytest.raises(StorageError, match=r"cannot read .*telemetry\.parquet"):
        read_telemetry(folder)
