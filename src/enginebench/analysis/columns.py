"""Columns of the records table as numpy arrays, without a Python loop over rows.

Nullable integers stay integers beside a mask: monotonic nanoseconds outgrow the 53 bits of a float
after 104 days of uptime.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ints:
    """A nullable integer column. `values` mean nothing where `known` is False."""

    values: IntArray
    known: BoolArray

    def at(self, rows: IntArray) -> Ints:
        return Ints(self.values[rows], self.known[rows])

    def total(self, rows: BoolArray) -> int:
        """Sum of what is known among `rows`."""
        return int(self.values[rows & self.known].sum())


def ints(table: pa.Table, name: str) -> Ints:
    """A nullable integer column."""
    return _ints(table.column(name).combine_chunks())


def filled(table: pa.Table, name: str) -> IntArray:
    """An integer column without nulls. Raises ValueError where there is one after all."""
    column = ints(table, name)
    if not column.known.all():
        raise ValueError(f"column {name} has nulls")
    return column.values


def flags(table: pa.Table, name: str) -> BoolArray:
    """A boolean column; null counts as False."""
    return _flags(table.column(name).combine_chunks())


def known(table: pa.Table, name: str) -> BoolArray:
    """Rows of a column that are not null."""
    rows: BoolArray = table.column(name).combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    return rows


def is_one_of(table: pa.Table, name: str, words: Collection[str]) -> BoolArray:
    """Rows of a dictionary column that hold one of `words`; null is none of them."""
    column = table.column(name).combine_chunks()
    return _codes(column, sorted(words)) >= 0


def counts(table: pa.Table, name: str, rows: BoolArray) -> dict[str | None, int]:
    """How often each word of a dictionary column stands in `rows`; None for nulls."""
    column = table.column(name).combine_chunks()
    words = column.dictionary.to_pylist()
    codes = _codes(column, words)[rows]
    found: dict[str | None, int] = {
        word: int(n)
        for word, n in zip(words, np.bincount(codes[codes >= 0], minlength=len(words)), strict=True)
    }
    found[None] = int((codes < 0).sum())
    return {word: n for word, n in found.items() if n}


@dataclass(frozen=True, slots=True)
class Lists:
    """Where the chunks of each row stand in the flattened chunk columns."""

    lengths: IntArray
    """Chunks per row."""
    row: IntArray
    """Row of each chunk, ascending."""


def lists(table: pa.Table, name: str) -> Lists:
    """Shape of a list column; a null list has no chunks."""
    lengths = _lengths(table.column(name).combine_chunks())
    return Lists(lengths, np.repeat(np.arange(len(lengths)), lengths))


def chunk_ints(table: pa.Table, name: str, shape: Lists) -> Ints:
    """A list column of integers, flattened. Rows whose list is null (a column that an older file
    lacks) are unknown throughout. Raises ValueError for a list of another length than `shape`."""
    column, present = _chunk_column(table, name, shape)
    found = _ints(column)
    if present.all():
        return found
    values, known = np.zeros(len(present), np.int64), np.zeros(len(present), np.bool_)
    values[present], known[present] = found.values, found.known
    return Ints(values, known)


def chunk_flags(table: pa.Table, name: str, shape: Lists) -> BoolArray:
    """A list column of booleans, flattened; null counts as False."""
    column, present = _chunk_column(table, name, shape)
    values = np.zeros(len(present), np.bool_)
    values[present] = _flags(column)
    return values


def chunk_words(table: pa.Table, name: str, words: Sequence[str]) -> IntArray:
    """A list column of words, flattened: index into `words`, -1 for any other word and for null."""
    return _codes(table.column(name).combine_chunks().flatten(), words)


def _chunk_column(table: pa.Table, name: str, shape: Lists) -> tuple[pa.Array, BoolArray]:
    column = table.column(name).combine_chunks()
    lengths = _lengths(column)
    has_list = column.is_valid().to_numpy(zero_copy_only=False)
    if not np.array_equal(lengths[has_list], shape.lengths[has_list]):
        raise ValueError(f"column {name} has another number of chunks than the other chunk columns")
    return column.flatten(), has_list[shape.row]


def _lengths(column: pa.Array) -> IntArray:
    lengths: IntArray = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64, copy=False)


def _ints(column: pa.Array) -> Ints:
    known = column.is_valid().to_numpy(zero_copy_only=False)
    values = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
    return Ints(values.astype(np.int64, copy=False), known)


def _flags(column: pa.Array) -> BoolArray:
    values: BoolArray = column.fill_null(False).to_numpy(zero_copy_only=False)
    return values


def _codes(column: pa.DictionaryArray, words: Sequence[str]) -> IntArray:
    place = {word: index for index, word in enumerate(words)}
    # One more entry at the end, so that index -1 (null) finds "no word".
    lookup = np.array([place.get(word, -1) for word in column.dictionary.to_pylist()] + [-1], np.int64)
    codes: IntArray = lookup[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return codes
