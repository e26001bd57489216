"""The records of one cell as arrays: one row per request, and its output chunks side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from enginebench.analysis import columns
from enginebench.analysis.columns import BoolArray, FloatArray, IntArray, Ints, Lists
from enginebench.model.record import CHUNK_KINDS, OUTPUT_KINDS

COUNTED_BY_SERVER = frozenset({"token_ids", "continuous_usage", "usage"})
"""Token sources that are the server's own count of the whole answer."""

_CONTENT, _REASONING = CHUNK_KINDS.index("content"), CHUNK_KINDS.index("reasoning")
_IS_OUTPUT = np.array([kind in OUTPUT_KINDS for kind in CHUNK_KINDS] + [False])


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output chunks (reasoning, content, tool) of all requests, in order of arrival per request.

    Choices of one request are one stream: this version asks for one.
    """

    request: IntArray
    """Row of the request, ascending."""
    at_ns: IntArray
    """Kernel stamp; `read_ns` throughout a request that lacks a stamp on any chunk or that crossed
    a clock step, so that no request mixes two clocks."""
    tokens: FloatArray
    """Visible tokens of the chunk; NaN where no one told."""
    coalesced: BoolArray
    first: IntArray
    """Per request: position of its first output chunk, -1 without output. `last` likewise."""
    last: IntArray
    first_content: IntArray
    """Per request: position of its first chunk of kind content, -1 without one."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts per request."""

    prompt: Ints
    output: Ints
    """As reported, hidden reasoning included."""
    visible: Ints
    """Output tokens that could be seen arriving: `output` without `hidden`."""
    hidden: IntArray
    """Reasoning tokens that were reported while no reasoning was streamed; 0 otherwise."""
    cached: Ints
    asked_prompt: IntArray
    asked_output: IntArray
    per_chunk: BoolArray
    """The tokens of every output chunk are known: told by the server, or proven because there are
    as many output chunks as tokens and each carries at least one."""
    sources: Mapping[str, int]
    """Successful measured requests by the source of their count of output tokens."""


@dataclass(frozen=True, slots=True)
class Requests:
    """All requests of one cell, whatever their phase and outcome. Times are monotonic ns."""

    measured: BoolArray
    ok: BoolArray
    cancelled: BoolArray
    clock_stepped: BoolArray
    intended_ns: IntArray
    started_ns: IntArray
    connected: Ints
    sent: Ints
    done: Ints
    last_event_ns: IntArray
    """Latest thing known of the request; `started_ns` at least."""
    tokens: Tokens
    outputs: Outputs
    client_delay_ns: FloatArray
    """read - arrived of every chunk with a usable stamp in a measured request."""
    n_unstamped: int
    """Output chunks of measured requests whose time is `read_ns` for want of a stamp."""

    def __len__(self) -> int:
        return len(self.ok)

    @property
    def sample(self) -> BoolArray:
        """Who counts in latencies: successful requests of phase `measure`."""
        return self.ok & self.measured


def read_requests(table: pa.Table) -> Requests:
    """Rows of one cell (columns as in docs/formats.md) as arrays. The order of rows is free."""
    shape = columns.lists(table, "chunk_kind")
    arrived = columns.chunk_ints(table, "chunk_arrived_ns", shape)
    read = columns.chunk_ints(table, "chunk_read_ns", shape)
    measured = columns.is_one_of(table, "phase", {"measure"})
    stepped = columns.flags(table, "clock_stepped")
    kinds = columns.chunk_words(table, "chunk_kind", CHUNK_KINDS)

    stamped = _all_in_row(arrived.known, shape) & ~stepped
    at_ns = np.where(stamped[shape.row], arrived.values, read.values)
    ok = columns.is_one_of(table, "outcome", {"ok"})
    sources = columns.counts(table, "token_source", ok & measured)
    tokens, chunk_tokens = _tokens(table, shape, kinds, sources)
    times = [columns.ints(table, name) for name in ("sent_ns", "headers_ns", "done_ns")]
    started_ns = columns.filled(table, "started_ns")
    seen = arrived.known & (measured & ~stepped)[shape.row]
    return Requests(
        measured=measured,
        ok=ok,
        cancelled=columns.is_one_of(table, "outcome", {"cancelled"}),
        clock_stepped=stepped,
        intended_ns=columns.filled(table, "intended_ns"),
        started_ns=started_ns,
        connected=columns.ints(table, "connected_ns"),
        sent=times[0],
        done=times[2],
        last_event_ns=_last_event(started_ns, times, at_ns, shape),
        tokens=tokens,
        outputs=_outputs(table, shape, kinds, at_ns, chunk_tokens),
        client_delay_ns=(read.values - arrived.values)[seen].astype(np.float64),
        n_unstamped=int((_IS_OUTPUT[kinds] & (measured & ~stamped)[shape.row]).sum()),
    )


def _outputs(
    table: pa.Table, shape: Lists, kinds: IntArray, at_ns: IntArray, chunk_tokens: FloatArray
) -> Outputs:
    out = np.flatnonzero(_IS_OUTPUT[kinds])
    request, n = shape.row[out], len(shape.lengths)
    first, last = _ends(request, n)
    content = np.flatnonzero(kinds[out] == _CONTENT)
    first_content = _ends(request[content], n)[0]
    has_content = first_content >= 0
    first_content[has_content] = content[first_content[has_content]]
    return Outputs(
        request=request,
        at_ns=at_ns[out],
        tokens=chunk_tokens,
        coalesced=columns.chunk_flags(table, "chunk_coalesced", shape)[out],
        first=first,
        last=last,
        first_content=first_content,
    )


def _tokens(
    table: pa.Table, shape: Lists, kinds: IntArray, sources: Mapping[str | None, int]
) -> tuple[Tokens, FloatArray]:
    """Counts per request, and visible tokens per output chunk."""
    n = len(shape.lengths)
    output = columns.ints(table, "output_tokens")
    reasoning = columns.ints(table, "reasoning_tokens")
    streams_reasoning = np.bincount(shape.row[kinds == _REASONING], minlength=n) > 0
    hidden = np.where(reasoning.known & ~streams_reasoning, reasoning.values, 0)
    visible = Ints(np.maximum(output.values - hidden, 0), output.known)

    out = np.flatnonzero(_IS_OUTPUT[kinds])
    request = shape.row[out]
    told = columns.chunk_ints(table, "chunk_tokens", shape).at(out)
    n_out = np.bincount(request, minlength=n)
    all_told = np.bincount(request[told.known], minlength=n) == n_out
    by_server = columns.is_one_of(table, "token_source", COUNTED_BY_SERVER)
    one_each = ~all_told & by_server & visible.known & (visible.values == n_out)
    per_chunk = np.where(told.known, told.values.astype(np.float64), np.nan)
    per_chunk[one_each[request]] = 1.0
    # Hidden tokens that a running count reported before the first output were carried to it.
    first = _ends(request, n)[0]
    carried = (hidden > 0) & (first >= 0) & all_told
    per_chunk[first[carried]] = np.maximum(per_chunk[first[carried]] - hidden[carried], 1.0)

    return Tokens(
        prompt=columns.ints(table, "prompt_tokens"),
        output=output,
        visible=visible,
        hidden=hidden,
        cached=columns.ints(table, "cached_tokens"),
        asked_prompt=columns.filled(table, "asked_prompt_tokens"),
        asked_output=columns.filled(table, "asked_output_tokens"),
        per_chunk=all_told | one_each,
        sources={source or "none": n for source, n in sources.items()},
    ), per_chunk


def _ends(request: IntArray, n_requests: int) -> tuple[IntArray, IntArray]:
    """Positions of the first and the last entry of each request in ascending `request`; -1 for none."""
    first, last = np.full(n_requests, -1), np.full(n_requests, -1)
    starts = np.flatnonzero(np.diff(request, prepend=-1))
    first[request[starts]] = starts
    last[request[starts]] = np.append(starts, len(request))[1:] - 1
    return first, last


def _all_in_row(known: BoolArray, shape: Lists) -> BoolArray:
    """Rows in which every chunk is known."""
    answer: BoolArray = np.bincount(shape.row[~known], minlength=len(shape.lengths)) == 0
    return answer


def _last_event(started_ns: IntArray, times: list[Ints], at_ns: IntArray, shape: Lists) -> IntArray:
    latest = started_ns.copy()
    for time in times:
        np.maximum(latest, time.values, out=latest, where=time.known)
    last_chunk = _ends(shape.row, len(shape.lengths))[1]
    has_chunk = last_chunk >= 0
    latest[has_chunk] = np.maximum(latest[has_chunk], at_ns[last_chunk[has_chunk]])
    return latest
