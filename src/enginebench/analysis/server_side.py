"""Latencies as the engine itself observed them, from its histograms' growth over the window.

They stand beside the client's, and are not the same quantity: an engine starts its clock when it has
read a request and stops it when it has made a token, so the network, its HTTP front and our
connection are outside; and it counts what it observed inside the window, whichever request that
belongs to, failed ones and strangers' included.
"""

from __future__ import annotations

import numpy as np

from enginebench.analysis import stats
from enginebench.model.plan import CellResult, Histogram
from enginebench.model.summary import Metric, Stat

SERVER_SIDE = {"server_ttft": "ttft_seconds", "server_itl": "itl_seconds"}
"""Our metric -> the histogram it is taken from."""
_METHOD = "linear inside the engine's buckets"


def server_side(result: CellResult | None) -> dict[str, Metric]:
    """All of `SERVER_SIDE`, in ms; without numbers where the engine has no such histogram."""
    found = result.engine_histograms if result else {}
    return {name: _metric(found.get(ours)) for name, ours in SERVER_SIDE.items()}


def _metric(histogram: Histogram | None) -> Metric:
    if histogram is None:
        return stats.absent("ms", "the engine told no such histogram over the window")
    if not histogram.count:
        return stats.absent("ms", "the engine observed none inside the window")
    n = histogram.count
    numbers: dict[str, Stat] = {}
    notes = [_METHOD]
    for name, q in stats.QUANTILES.items():
        if n < stats.minimum_samples(q):
            notes.append(f"{name}: n/a (n={n})")
            numbers[name] = Stat(None)
            continue
        value_s = quantile(histogram, q)
        if value_s is None:
            notes.append(f"{name}: beyond the last of them ({histogram.le[-1] if histogram.le else 0:g} s)")
        numbers[name] = Stat(None if value_s is None else value_s * 1e3)
    return Metric("ms", n, numbers, "; ".join(notes))


def quantile(histogram: Histogram, q: float) -> float | None:
    """In seconds, linear inside the bucket that holds it, as Prometheus' `histogram_quantile` has
    it: the first bucket begins at 0, and beyond the last bound nothing is known but "more".

    The true value lies somewhere in that bucket, so the error is up to the bucket's width.
    """
    rank = q * histogram.count
    place = int(np.searchsorted(histogram.n, rank, side="left"))
    if place == len(histogram.le):
        return None
    low, high = (histogram.le[place - 1] if place else 0.0), histogram.le[place]
    below = histogram.n[place - 1] if place else 0
    return low + (high - low) * (rank - below) / (histogram.n[place] - below)
