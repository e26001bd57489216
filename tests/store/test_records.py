"""Records to Parquet and back: the public file format."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fakes.records import a_record

from enginebench.errors import StorageError
from enginebench.model.record import Chunks
from enginebench.store.records import SCHEMA, RecordWriter, read_records, table

DESIGNED = """target load level repeat phase seq session turn worker endpoint engine_start
intended_ns started_ns connected_ns tls_ns sent_ns headers_ns done_ns
status outcome error_kind error_message http_version retried connection_reused clock_stepped stamp_source
chunk_arrived_ns chunk_read_ns chunk_coalesced chunk_bytes chunk_chars chunk_tokens chunk_choice chunk_kind
prompt_tokens output_tokens reasoning_tokens cached_tokens reference_tokens token_source
asked_prompt_tokens asked_output_tokens finish_reason prompt_sha256 output_chars output_bytes text
server_timings ratelimit request_id""".split()


def test_the_columns_are_the_public_format():
    assert SCHEMA.names == DESIGNED


def test_a_record_comes_back_with_its_nulls(tmp_path):
    record = a_record(
        seq=(5 << 32) + 7,
        sent_ns=None,
        output_tokens=None,
        chunks=Chunks(
            [None, 5], [6, 7], [False, True], [1, 2], [0, 3], [None, 4], [0, 1], ["role", "content"]
        ),
    )
    with RecordWriter(tmp_path / "r.parquet") as writer:
        writer.add(record)
    (row,) = read_records([tmp_path / "r.parquet"]).to_pylist()
    assert (row["seq"], row["sent_ns"], row["output_tokens"]) == ((5 << 32) + 7, None, None)
    assert row["chunk_arrived_ns"] == [None, 5]
    assert row["chunk_tokens"] == [None, 4]
    assert row["chunk_kind"] == ["role", "content"]
    assert row["chunk_coalesced"] == [False, True]


def test_a_record_without_chunks_has_empty_lists(tmp_path):
    assert table([a_record(chunks=Chunks())]).column("chunk_read_ns").to_pylist() == [[]]


def test_stamps_are_delta_packed_and_kinds_are_a_dictionary(tmp_path):
    with RecordWriter(tmp_path / "r.parquet") as writer:
        writer.add(a_record())
    group = pq.ParquetFile(tmp_path / "r.parquet").metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in encodings["chunk_arrived_ns.list.element"]
    assert "DELTA_BINARY_PACKED" in encodings["chunk_read_ns.list.element"]
    kind = pq.read_schema(tmp_path / "r.parquet").field("chunk_kind").type
    assert kind.value_type == pa.dictionary(pa.int8(), pa.string())


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    with pytest.raises(RuntimeError, match="broken off"), RecordWriter(tmp_path / "r.parquet") as writer:
        writer.add(a_record())
        raise RuntimeError("broken off")
    assert list(tmp_path.iterdir()) == []


def test_a_level_of_many_records_is_one_row_group_that_pandas_reads(tmp_path):
    n = 45_000  # gathered in three pieces
    record = a_record()
    with RecordWriter(tmp_path / "r.parquet") as writer:
        for _ in range(n):
            writer.add(record)
    assert pq.ParquetFile(tmp_path / "r.parquet").metadata.num_row_groups == 1
    frame = pd.read_parquet(tmp_path / "r.parquet")
    assert (len(frame), list(frame.chunk_kind.iloc[-1])) == (n, ["content", "content"])


def test_a_file_of_several_row_groups_reads_too(tmp_path):
    records = [a_record(seq=i) for i in range(6)]
    pq.write_table(table(records), tmp_path / "r.parquet", row_group_size=2)
    assert read_records([tmp_path / "r.parquet"]).column("seq").to_pylist() == list(range(6))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all", b"PAR1" + b"\0" * 100])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "r.parquet").write_bytes(content)
    with pytest.raises(StorageError, match=r"cannot read .*r\.parquet"):
        read_records([tmp_path / "r.parquet"])


def test_several_files_become_one_table_whatever_their_words(tmp_path):
    for name, target in (("a", "vllm"), ("b", "llamacpp")):
        with RecordWriter(tmp_path / name) as writer:
            writer.add(a_record(target=target, finish_reason=name))
    merged = read_records([tmp_path / "a", tmp_path / "b"])
    assert merged.column("target").to_pylist() == ["vllm", "llamacpp"]
    assert merged.column("finish_reason").to_pylist() == ["a", "b"]


def test_no_file_is_an_empty_table_of_the_same_columns():
    assert read_records([]).schema.equals(SCHEMA)


def test_a_file_of_an_older_version_lacks_a_column_and_still_reads(tmp_path):
    older = table([a_record()]).drop_columns(["ratelimit"])
    pq.write_table(older, tmp_path / "old.parquet")
    assert read_records([tmp_path / "old.parquet"]).column("ratelimit").to_pylist() == [None]
