"""The spool: captures of the cell in flight, so that a crash loses at most the last seconds.

A spool file is a sequence of frames, each a little-endian u32 length and a msgpack body. The first
is the header (a CellHeader). A Part holds the scalars of one capture as they stand, and the reads
since its previous part; a request that ends between two flushes has one part. A Mark says that the
measured window has begun. A frame cut short by a crash ends the file.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from enginebench.model.capture import Capture, Read
from enginebench.model.plan import Cell

_LENGTH = struct.Struct("<I")

# Everything of a Capture but its reads, which are appended part by part.
_SCALARS = tuple(name for name in Capture.__slots__ if name not in ("reads", "seq"))


class RequestFacts(msgspec.Struct, array_like=True, frozen=True):
    """What was asked: kept beside the capture so that a spool can be decoded without the scenario."""

    prompt_sha256: str
    asked_prompt_tokens: int
    asked_output_tokens: int


class CellHeader(msgspec.Struct, array_like=True, frozen=True, tag=0):
    """Which cell the spool belongs to, and what its records repeat on every row."""

    cell: Cell
    endpoint: str
    engine_start: int | None
    worker: int


class _Part(msgspec.Struct, array_like=True, tag=1):
    seq: int
    facts: RequestFacts
    scalars: list[Any]
    reads: Sequence[tuple[int | None, int, int, bytes]]


class _Mark(msgspec.Struct, array_like=True, tag=2):
    window_start_ns: int


_FRAME = msgspec.msgpack.Decoder(CellHeader | _Part | _Mark)


class Spool:
    """Appends captures to one file. Secrets are struck out of bodies and headers before they get there."""

    def __init__(self, path: Path, header: CellHeader, secrets: tuple[str, ...] = ()) -> None:
        self._file: BinaryIO = path.open("wb", buffering=1 << 20)
        self._secrets = tuple(s.encode() for s in secrets if s)
        self._encode = msgspec.msgpack.Encoder().encode
        self._frame(header)
        self._file.flush()

    def _frame(self, content: msgspec.Struct) -> None:
        body = self._encode(content)
        self._file.write(_LENGTH.pack(len(body)))
        self._file.write(body)

    def append(self, capture: Capture, facts: RequestFacts, first_read: int = 0) -> int:
        """Writes the capture's scalars and its reads from `first_read` on; returns how many reads
        it has now, to be given as `first_read` next time."""
        reads = capture.reads[first_read:] if first_read else capture.reads
        scalars = [getattr(capture, name) for name in _SCALARS]
        if self._secrets:
            # A secret may be cut by the border of two reads: the read before the new ones is looked
            # at with them, and while more may come the last is held back.
            before = min(1, first_read)
            reads = self._clean_reads(capture.reads[first_read - before :])[before:]
            if capture.ending is None:
                reads = reads[:-1]
            scalars[_SCALARS.index("headers")] = [
                (name, self._clean(value.encode()).decode()) for name, value in capture.headers
            ]
        self._frame(_Part(capture.seq, facts, scalars, reads))
        return first_read + len(reads)

    def mark_window(self, start_ns: int) -> None:
        self._frame(_Mark(start_ns))

    def _clean_reads(self, reads: list[Read]) -> list[Read]:
        """Strikes secrets out where they stand, also one that was cut by the border of two reads:
        all bodies keep their lengths."""
        whole = b"".join(read.body for read in reads)
        struck = whole
        for secret in self._secrets:
            struck = struck.replace(secret, b"*" * len(secret))
        if struck == whole:
            return reads
        ends = list(itertools.accumulate(len(read.body) for read in reads))
        starts = [0, *ends[:-1]]
        return [
            Read(read.arrived_ns, read.read_ns, read.quiet_ns, struck[start:end])
            for read, start, end in zip(reads, starts, ends, strict=True)
        ]

    def _clean(self, body: bytes) -> bytes:
        for secret in self._secrets:
            if secret in body:
                body = body.replace(secret, b"***")
        return body

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class SpoolReader:
    """Iterates over every capture in the order in which they ended; those that never ended come
    last, with ending `interrupted`. `window_start_ns` is known once the iteration is over."""

    header: CellHeader
    _frames: Iterator[CellHeader | _Part | _Mark]
    window_start_ns: int | None = None

    def __iter__(self) -> Iterator[tuple[Capture, RequestFacts]]:
        open_reads: dict[int, list[Read]] = {}
        open_parts: dict[int, _Part] = {}
        for part in self._frames:
            if isinstance(part, _Mark):
                self.window_start_ns = part.window_start_ns
            if not isinstance(part, _Part):
                continue
            reads = open_reads.setdefault(part.seq, [])
            reads += (Read(*read) for read in part.reads)
            capture = _capture(part, reads)
            if capture.ending is None:
                open_parts[part.seq] = part
            else:
                open_reads.pop(part.seq)
                open_parts.pop(part.seq, None)
                yield capture, part.facts
        for seq, part in open_parts.items():
            capture = _capture(part, open_reads[seq])
            capture.ending = "interrupted"
            yield capture, part.facts


def read_spool(path: Path) -> SpoolReader:
    """Raises ValueError for a file without a readable header."""
    frames = _frames(path)
    header = next(frames, None)
    if not isinstance(header, CellHeader):
        raise ValueError(f"{path} has no readable header")
    return SpoolReader(header, frames)


def _frames(path: Path) -> Iterator[CellHeader | _Part | _Mark]:
    with path.open("rb") as file:
        while len(prefix := file.read(4)) == 4:
            (length,) = _LENGTH.unpack(prefix)
            body = file.read(length)
            if len(body) < length:
                return
            try:
                yield _FRAME.decode(body)
            except msgspec.DecodeError:
                # A disk that filled up, or a torn page after a power cut: what came before stands.
                return


def _capture(part: _Part, reads: list[Read]) -> Capture:
    scalars = dict(zip(_SCALARS, part.scalars, strict=True))
    scalars["headers"] = [(name, value) for name, value in scalars["headers"]]
    return Capture(seq=part.seq, reads=reads, **scalars)
