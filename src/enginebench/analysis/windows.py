"""The span over which a level's rates are taken, and what happened inside it.

What counts is decided by the time of arrival, not by the phase of the request: a warm-up request
that still streams when the window opens contributes the tokens that arrive inside, and a measured
one that ends after the window does not contribute those that come later.

Only successful requests contribute tokens. A failed request's tokens are of no use to anyone, and a
request that we cut off (Ctrl-C, end of the drain) never showed that it would succeed; leaving both
out can only lower a result. A request that is still open when the window ends is let run to its end
in the drain, so its tokens count once it has succeeded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from enginebench.analysis.columns import BoolArray, FloatArray, IntArray
from enginebench.analysis.requests import Requests
from enginebench.model.plan import CellResult
from enginebench.model.summary import LevelWindow
from enginebench.units import seconds

HELD_FROM = 2
"""A cell by count whose requests are at least this many times its cap holds the cap long enough
for a window of its own; below that, ramp and drain are most of it."""


def find_window(result: CellResult | None, requests: Requests) -> LevelWindow | None:
    """The window of one cell; None when nothing was measured.

    `time`  a cell by duration: the planned window, [window.start, window.end];
    `held`  a cell by count of at least 2 x cap requests: [first, last measured send]. With every
            end another request is sent, so the cap is held until the last send;
    `whole` any other: [first measured send, last measured end], ramp and drain included.

    A cell that broke off ends at the last event seen in any of its requests.
    """
    sent = requests.sent.values[requests.measured & requests.sent.known]
    if result is not None and result.window is not None and result.cell.duration_ns is not None:
        end_ns = result.window.end_ns
        return _window("time", result.window.start_ns, _last_event(requests) if end_ns is None else end_ns)
    if not len(sent):
        return None
    if result is None or not result.finished:
        return _window("whole", int(sent.min()), _last_event(requests))
    if (result.cell.requests or 0) >= HELD_FROM * result.cell.level:
        return _window("held", int(sent.min()), int(sent.max()))
    return _window("whole", int(sent.min()), int(_ended_ns(requests)[requests.measured].max()))


def _window(kind: str, start_ns: int, end_ns: int) -> LevelWindow | None:
    if end_ns <= start_ns:
        return None
    return LevelWindow(kind, start_ns, end_ns, seconds(end_ns - start_ns))


def _last_event(requests: Requests) -> int:
    return int(requests.last_event_ns.max()) if len(requests) else 0


def _ended_ns(requests: Requests) -> IntArray:
    """End of each request: body complete, else the last event seen of it."""
    return np.where(requests.done.known, requests.done.values, requests.last_event_ns)


@dataclass(frozen=True, slots=True)
class Arrived:
    """Tokens that arrived inside a window."""

    n_tokens: float
    n_requests: int
    """Successful requests that contributed."""
    n_uncounted: int
    """Successful requests whose tokens no one told, and that should have contributed."""


def output_arrived(window: LevelWindow, requests: Requests) -> Arrived:
    """Visible output tokens of successful requests, by arrival in (start, end].

    A chunk counts with its own tokens where those are known, the last one with what the total has
    more (an end token has no text); otherwise the request's tokens are spread evenly over its
    output chunks. Either way a request counts with the total that was reported, so that a server
    is not favoured for how much it tells.
    """
    outputs = requests.outputs
    inside = _inside(window, outputs.at_ns) & requests.ok[outputs.request]
    rows = np.bincount(outputs.request[inside], minlength=len(requests)) > 0
    counted = requests.tokens.per_chunk | requests.tokens.visible.known
    tokens = tokens_per_chunk(requests)[inside & counted[outputs.request]]
    return Arrived(float(tokens.sum()), int((rows & counted).sum()), int((rows & ~counted).sum()))


def prompt_arrived(window: LevelWindow, requests: Requests) -> Arrived:
    """Prompt tokens of successful requests (cached ones included), counted at the arrival of the
    first output: by then the whole prompt has been processed."""
    outputs, prompt = requests.outputs, requests.tokens.prompt
    rows = np.flatnonzero(requests.ok & (outputs.first >= 0))
    rows = rows[_inside(window, outputs.at_ns[outputs.first[rows]])]
    known = prompt.known[rows]
    return Arrived(float(prompt.values[rows[known]].sum()), int(known.sum()), int((~known).sum()))


def completed(window: LevelWindow, requests: Requests) -> int:
    """Successful requests of any phase whose response was complete in (start, end]."""
    return int((requests.ok & requests.done.known & _inside(window, requests.done.values)).sum())


@dataclass(frozen=True, slots=True)
class InFlight:
    mean: float
    """Integral of the requests in flight over the window, divided by its length."""
    peak: int
    n_requests: int
    """Requests that were in flight at some moment of the window."""


def in_flight(window: LevelWindow, requests: Requests) -> InFlight:
    """Requests between sent and done inside the window, whatever their phase and outcome.

    A request that was cut off is in flight until the window ends; one that broke off by itself or
    timed out, until its last event, which is a little early. Over a window that starts and ends
    empty the mean is request rate x mean (done - sent): Little's law as an identity.
    """
    cut = requests.cancelled & ~requests.done.known
    ended = np.where(cut, window.end_ns, _ended_ns(requests))
    sent = requests.sent.values
    during = requests.sent.known & (sent < window.end_ns) & (ended > window.start_ns)
    from_ns = np.maximum(sent[during], window.start_ns)
    until_ns = np.minimum(ended[during], window.end_ns)
    mean = float((until_ns - from_ns).sum()) / (window.end_ns - window.start_ns)
    return InFlight(mean, _peak(from_ns, until_ns), int(during.sum()))


def _peak(from_ns: IntArray, until_ns: IntArray) -> int:
    """Most intervals open at once; one that ends when another begins is not open with it."""
    if not len(from_ns):
        return 0
    begun = np.arange(1, len(from_ns) + 1)
    ended = np.searchsorted(np.sort(until_ns), np.sort(from_ns), side="right")
    return int((begun - ended).max())


def _inside(window: LevelWindow, at_ns: IntArray) -> BoolArray:
    answer: BoolArray = (window.start_ns < at_ns) & (at_ns <= window.end_ns)
    return answer


def tokens_per_chunk(requests: Requests) -> FloatArray:
    """Tokens of each output chunk: its own, else an even share of the request's."""
    outputs, tokens = requests.outputs, requests.tokens
    n_out = np.bincount(outputs.request, minlength=len(requests))
    share = (tokens.visible.values / np.maximum(n_out, 1))[outputs.request]
    per_chunk = np.where(tokens.per_chunk[outputs.request], outputs.tokens, share)
    summed = np.bincount(outputs.request, per_chunk, len(requests))
    textless = np.where(tokens.visible.known, np.maximum(tokens.visible.values - summed, 0), 0)
    has_output = outputs.last >= 0
    per_chunk[outputs.last[has_output]] += textless[has_output]
    return per_chunk
