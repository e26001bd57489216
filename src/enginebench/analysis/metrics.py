"""Per-request and per-chunk quantities, before any statistics.

Every function takes all requests of a cell and returns float64 with NaN where the quantity is not
defined, never 0. Who counts is the caller's choice through `rows`, or through indexing: published
latencies are of successful requests of phase `measure` (`Requests.sample`). Times are of arrival at
this machine (kernel stamps; see `Outputs.at_ns` for the fallback). Nothing here is clipped: a
negative duration is left for `checks.impossible_times` to see.
"""

from __future__ import annotations

import numpy as np

from enginebench.analysis.columns import BoolArray, FloatArray, IntArray
from enginebench.analysis.requests import Requests


def ttft_ns(requests: Requests) -> FloatArray:
    """Time to first token: first chunk with generated output of any kind (content, reasoning, tool
    call) minus sent. Per request, ns; undefined without output."""
    return _since_sent(requests, requests.outputs.first)


def ttfa_ns(requests: Requests) -> FloatArray:
    """Time to first answer: first chunk of kind content minus sent. Per request, ns; undefined for
    an answer that is only reasoning or only a tool call. Equals TTFT where nothing precedes the
    answer."""
    return _since_sent(requests, requests.outputs.first_content)


def e2e_ns(requests: Requests) -> FloatArray:
    """End-to-end latency: last output chunk minus sent. Per request, ns; undefined without output.
    Usage frames, `[DONE]` and the end of the body are later and do not count."""
    return _since_sent(requests, requests.outputs.last)


def tpot_ns(requests: Requests) -> FloatArray:
    """Time per output token: (last output - first output) / (N - k). Per request, ns.

    N are the visible output tokens as reported (the sum over chunks where there is no total), k
    those of the first output chunk (1 where its count is not known). Hidden reasoning is not in N:
    its tokens were made before the first output. Undefined for a single output chunk, for N <= k,
    for an unknown N, and where first and last output came in one read, so that no time passed
    between them.
    """
    outputs, tokens = requests.outputs, requests.tokens
    first, last = outputs.first, outputs.last
    span = np.full(len(requests), np.nan)
    several = last > first
    span[several] = outputs.at_ns[last[several]] - outputs.at_ns[first[several]]
    span[span == 0] = np.nan

    summed = np.bincount(outputs.request, outputs.tokens, len(requests))
    n = np.where(tokens.visible.known, tokens.visible.values, np.where(tokens.per_chunk, summed, np.nan))
    in_first = np.ones(len(requests))
    in_first[several] = outputs.tokens[first[several]]
    n_timed = n - np.where(np.isnan(in_first), 1.0, in_first)
    n_timed[~(n_timed > 0)] = np.nan
    answer: FloatArray = span / n_timed
    return answer


def icl_ns(requests: Requests, rows: BoolArray) -> FloatArray:
    """Inter-chunk latency: gaps between neighbouring output chunks of one request, ns, pooled over
    the requests in `rows`. One value fewer than output chunks; the wait for the first is not among
    them. Chunks of one read have one stamp: their gap is 0. Gaps of one stream, and of streams that
    share engine steps, are not independent."""
    return _gaps(requests.outputs.request, requests.outputs.at_ns, rows)[0]


def itl_ns(requests: Requests, rows: BoolArray) -> FloatArray:
    """Inter-token latency: a gap divided over the k tokens of the chunk that ends it, counted k
    times. ns, pooled over the requests in `rows` whose per-chunk tokens are known. A chunk without
    a token of its own (half a character held back) ends no gap. Per request the values add up to
    last output - first output, up to token-less chunks at either end."""
    outputs = requests.outputs
    carries = outputs.tokens > 0
    known = rows & requests.tokens.per_chunk
    gaps, ends = _gaps(outputs.request[carries], outputs.at_ns[carries], known)
    tokens = outputs.tokens[carries][ends]
    return np.repeat(gaps / tokens, tokens.astype(np.int64))


def itl_coverage(requests: Requests, rows: BoolArray) -> tuple[int, int]:
    """(requests with known per-chunk tokens, requests) among those in `rows` that have a gap."""
    has_gap = rows & (requests.outputs.last > requests.outputs.first)
    return int((has_gap & requests.tokens.per_chunk).sum()), int(has_gap.sum())


def connect_ns(requests: Requests) -> FloatArray:
    """TCP connect (name look-up included): connected minus started. Per request, ns; undefined
    where a connection was reused. Never part of TTFT."""
    connected = requests.connected
    return np.where(connected.known, connected.values - requests.started_ns, np.nan)


def send_lag_ns(requests: Requests) -> FloatArray:
    """Send lag: last request byte handed to the socket minus the intended time. Per request, ns;
    opening a connection is inside. Undefined for a request that was never sent."""
    return np.where(requests.sent.known, requests.sent.values - requests.intended_ns, np.nan)


def _since_sent(requests: Requests, position: IntArray) -> FloatArray:
    answer = np.full(len(requests), np.nan)
    rows = np.flatnonzero((position >= 0) & requests.sent.known)
    answer[rows] = requests.outputs.at_ns[position[rows]] - requests.sent.values[rows]
    return answer


def _gaps(request: IntArray, at_ns: IntArray, rows: BoolArray) -> tuple[FloatArray, IntArray]:
    """Gaps within each request of `rows`, and the positions of the chunks that end them."""
    ends = np.flatnonzero((request[1:] == request[:-1]) & rows[request[1:]]) + 1
    return (at_ns[ends] - at_ns[ends - 1]).astype(np.float64), ends
