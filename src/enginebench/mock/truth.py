"""What the mock really did: for every chunk, when it was handed to the kernel and when the model wanted it.

All times are CLOCK_MONOTONIC ns of the server's machine, so a client on the same boot can subtract.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from enginebench.errors import StorageError
from enginebench.model.record import ChunkKind
from enginebench.model.request import EndpointKind
from enginebench.units import NS_PER_MS

KEEP_CHUNKS = 500_000
"""`GET /truth` remembers the latest requests up to this many chunks (about 60 MB)."""

Ending = Literal["complete", "client_left", "stopped"]


@dataclass(slots=True)
class Truth:
    """One request. The three chunk lists have one entry per SSE event (one per whole answer when
    not streamed), in the order sent."""

    id: str
    """`id` of every chunk, and the X-Request-Id response header."""
    endpoint: EndpointKind
    stream: bool
    arrived_ns: int
    """The last byte of the request was parsed: the arrival time that the model works with."""
    prompt_tokens: int
    output_tokens: int
    """Asked for; what a client that left did get is the count of `content` kinds."""
    ending: Ending | None = None
    """None while it lasts."""
    n_queued: int = 0
    """Chunks that waited in the server because the client was not reading: their `sent_ns` is when
    they were queued, so they left later than it says."""
    kind: list[ChunkKind] = field(default_factory=list)
    sent_ns: list[int] = field(default_factory=list)
    """Read just before the write."""
    intended_ns: list[int] = field(default_factory=list)
    """End of the engine step that the chunk belongs to."""


def parse_truth(lines: bytes) -> list[Truth]:
    """The requests in a truth file or a `GET /truth` answer."""
    return [msgspec.json.decode(line, type=Truth) for line in lines.splitlines()]


def read_truth(path: Path | str) -> list[Truth]:
    return parse_truth(Path(path).read_bytes())


def render_truth(requests: Iterable[Truth]) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in requests)


class TruthLog:
    """Remembers ended requests and appends them to the file, off the token path."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str | None) -> None:
        self._loop = loop
        self._file = None if path is None else _open(path)
        self._kept: deque[Truth] = deque()
        self._n_kept_chunks = 0
        self._unfinished: deque[Truth] = deque()
        self._lateness = _Lateness()
        self._n_requests = 0
        self.n_forgotten = 0
        """Requests that `render` no longer has."""

    def ended(self, truth: Truth) -> None:
        self._n_requests += 1
        self._kept.append(truth)
        self._n_kept_chunks += len(truth.sent_ns)
        while self._n_kept_chunks > KEEP_CHUNKS and len(self._kept) > 1:
            self._n_kept_chunks -= len(self._kept.popleft().sent_ns)
            self.n_forgotten += 1
        # The rest waits for a turn of the loop each: users that end together would otherwise
        # delay the next step by the time it takes to write all of them.
        if not self._unfinished:
            self._loop.call_soon(self._finish_next)
        self._unfinished.append(truth)

    def render(self) -> bytes:
        return render_truth(self._kept)

    def summary(self) -> str:
        late = self._lateness
        return (
            f"served {self._n_requests} requests in {late.n} chunks; sent after the intended time by "
            f"{late.quantile_ms(0.5)} ms (median), {late.quantile_ms(0.99)} ms (p99)"
        )

    def close(self) -> None:
        while self._unfinished:
            self._finish(self._unfinished.popleft())
        if self._file is not None:
            self._file.close()
            self._file = None

    def _finish_next(self) -> None:
        if self._unfinished:  # empty once `close` has run
            self._finish(self._unfinished.popleft())
        if self._unfinished:
            self._loop.call_soon(self._finish_next)

    def _finish(self, truth: Truth) -> None:
        self._lateness.add(truth)
        if self._file is not None:
            self._file.write(render_truth([truth]))
            self._file.flush()


class _Lateness:
    """How late chunks were sent, in buckets of 0.1 ms up to 100 ms and one beyond."""

    _BUCKET_NS = 100_000

    def __init__(self) -> None:
        self.n = 0
        self._counts = [0] * 1001

    def add(self, truth: Truth) -> None:
        last = len(self._counts) - 1
        for sent_ns, intended_ns in zip(truth.sent_ns, truth.intended_ns, strict=True):
            self._counts[min((sent_ns - intended_ns) // self._BUCKET_NS, last)] += 1
        self.n += len(truth.sent_ns)

    def quantile_ms(self, quantile: float) -> str:
        """Upper edge of the bucket that holds it."""
        if not self.n:
            return "n/a"
        wanted = math.ceil(quantile * self.n)
        for bucket, below in enumerate(itertools.accumulate(self._counts)):
            if below >= wanted and bucket < len(self._counts) - 1:
                return f"{(bucket + 1) * self._BUCKET_NS / NS_PER_MS:.1f}"
        return "over 100"


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "ab")
    except OSError as error:
        raise StorageError(f"cannot write the truth file {path}: {error.strerror}") from error
