"""Columns as arrays: nulls, slices and tables of several pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.analysis.rows import ORIGIN_NS, chunks, record

from enginebench.analysis import columns
from enginebench.analysis.requests import read_requests
from enginebench.model.record import CHUNK_KINDS
from enginebench.store.records import SCHEMA, table

ROWS = [
    record(0, chunks(1, 2, tokens=[3, None])),
    record(5, outcome="error", error_kind="http_500"),
    record(None, [(7, "role", None), (8, "tool", 4)], started=5, stamped=False, outcome="truncated"),
]


def test_integers_beyond_the_range_of_a_float_keep_every_nanosecond() -> None:
    sent = columns.ints(table(ROWS), "sent_ns")
    assert sent.values[:2].tolist() == [ORIGIN_NS, ORIGIN_NS + 5_000_000]
    assert sent.known.tolist() == [True, True, False]


def test_a_null_where_none_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match="sent_ns has nulls"):
        columns.filled(table(ROWS), "sent_ns")


def test_words_are_matched_and_counted_with_nulls_apart() -> None:
    rows = table(ROWS)
    assert columns.is_one_of(rows, "outcome", {"ok", "truncated"}).tolist() == [True, False, True]
    assert columns.is_one_of(rows, "error_kind", {"http_500"}).tolist() == [False, True, False]
    assert columns.known(rows, "error_kind").tolist() == [False, True, False]
    assert columns.counts(rows, "error_kind", np.ones(3, bool)) == {"http_500": 1, None: 2}
    assert columns.counts(rows, "outcome", np.array([False, False, True])) == {"truncated": 1}


def test_chunk_columns_are_flattened_row_after_row() -> None:
    rows = table(ROWS)
    shape = columns.lists(rows, "chunk_kind")
    tokens = columns.chunk_ints(rows, "chunk_tokens", shape)

    assert shape.lengths.tolist() == [2, 0, 2]
    assert shape.row.tolist() == [0, 0, 2, 2]
    assert tokens.known.tolist() == [True, False, False, True]
    assert tokens.values[tokens.known].tolist() == [3, 4]
    kinds = columns.chunk_words(rows, "chunk_kind", CHUNK_KINDS)
    assert [CHUNK_KINDS[k] for k in kinds] == ["content", "content", "role", "tool"]
    assert columns.chunk_words(rows, "chunk_kind", ["content"]).tolist() == [0, 0, -1, -1]


def test_a_slice_and_a_table_of_pieces_read_like_the_whole() -> None:
    # The two pieces have different dictionaries, as files of different runs do.
    pieces = pa.concat_tables([table(ROWS[:1]), table(ROWS[1:])])
    for rows, expected in (
        (pieces, ["content", "content", "role", "tool"]),
        (table(ROWS).slice(1), ["role", "tool"]),
    ):
        shape = columns.lists(rows, "chunk_kind")
        assert [CHUNK_KINDS[k] for k in columns.chunk_words(rows, "chunk_kind", CHUNK_KINDS)] == expected
        assert len(columns.chunk_ints(rows, "chunk_read_ns", shape).values) == len(expected)
        assert len(read_requests(rows)) == len(rows)


def test_a_list_column_that_an_older_file_lacks_is_unknown_throughout() -> None:
    rows = table(ROWS)
    for name in ("chunk_tokens", "chunk_coalesced", "chunk_arrived_ns"):
        place = SCHEMA.get_field_index(name)
        rows = rows.set_column(place, SCHEMA.field(name), pa.nulls(3, SCHEMA.field(name).type))
    shape = columns.lists(rows, "chunk_kind")

    assert not columns.chunk_ints(rows, "chunk_tokens", shape).known.any()
    assert not columns.chunk_flags(rows, "chunk_coalesced", shape).any()
    found = read_requests(rows)
    assert found.n_unstamped == 3
    assert len(found.client_delay_ns) == 0


def test_chunk_columns_of_different_lengths_are_refused() -> None:
    rows = table(ROWS)
    name = "chunk_tokens"
    short = pa.array([[1], [], [1, 2]], SCHEMA.field(name).type)
    rows = rows.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), short)
    with pytest.raises(ValueError, match="chunk_tokens has another number of chunks"):
        columns.chunk_ints(rows, name, columns.lists(rows, "chunk_kind"))


def test_a_table_without_rows_has_no_requests() -> None:
    found = read_requests(SCHEMA.empty_table())
    assert len(found) == 0
    assert len(found.outputs.at_ns) == 0
