"""From samples to the numbers that are printed, and when a number may not be.

Percentiles interpolate linearly between order statistics (Hyndman and Fan's type 7: the default of
numpy, pandas and R), so that a notebook gives the same number. A percentile is printed only where
its sample allows a finite distribution-free two-sided 95 % interval; below that it is None.

No interval is given in this version: requests of one closed loop share engine steps and are not
independent, so the order-statistics interval would be too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from enginebench.analysis.columns import FloatArray
from enginebench.model.summary import Metric, Stat
from enginebench.units import NS_PER_MS

QUANTILES: Mapping[str, float] = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}

CLOCK_TOLERANCE_NS = 1_000_000
"""A kernel stamp is converted between two clocks whose distance is read once a second; a duration
may come out negative by less than this, and then is 0."""

MAX_UNKNOWN = 0.01
"""Above this share of requests without a token count, what needs the counts is n/a."""

_TAIL = 0.025


@cache
def minimum_samples(quantile: float) -> int:
    """Smallest n for which order statistics bound the quantile on both sides with 95 % confidence.

    With X ~ Binomial(n, q) samples below the quantile, the smallest lies above it with probability
    (1 - q)^n and the largest below it with q^n; both must be at most 2.5 %. 6, 36, 72 and 368 for
    p50, p90, p95 and p99.
    """
    widest = max(quantile, 1 - quantile)
    n = 1
    while widest**n > _TAIL:
        n += 1
    return n


def usable(durations_ns: FloatArray) -> FloatArray:
    """Defined durations: NaN left out, negative ones within the clock tolerance set to 0, others
    left out (`checks.impossible_times` counts them and fails the level)."""
    kept = durations_ns[durations_ns >= -CLOCK_TOLERANCE_NS]
    return np.maximum(kept, 0.0)


def distribution(values: FloatArray, unit: str, missing: str) -> Metric:
    """Percentiles of finite `values`; `missing` says in words why there may be none at all."""
    n = len(values)
    if n == 0:
        return absent(unit, missing)
    numbers = np.percentile(values, [100 * q for q in QUANTILES.values()])
    enough = {name: n >= minimum_samples(q) for name, q in QUANTILES.items()}
    stats = {
        name: Stat(float(number) if enough[name] else None)
        for name, number in zip(QUANTILES, numbers, strict=True)
    }
    lacking = [name for name in QUANTILES if not enough[name]]
    return Metric(unit, n, stats, f"{', '.join(lacking)}: n/a (n={n})" if lacking else None)


def latency(durations_ns: FloatArray, missing: str) -> Metric:
    """Percentiles in ms."""
    return distribution(usable(durations_ns) / NS_PER_MS, "ms", missing)


def speed(per_token: Metric) -> Metric:
    """Tokens/s from a metric of ms per token: the p99 is the speed that 99 % reach or exceed, so
    that the bad end has the high percentile in every row. Rates are never averaged."""
    stats = {name: Stat(1000 / stat.value if stat.value else None) for name, stat in per_token.stats.items()}
    return Metric("tok/s", per_token.n, stats, per_token.note)


def absent(unit: str, reason: str, names: tuple[str, ...] = tuple(QUANTILES)) -> Metric:
    """A metric without a single sample."""
    return Metric(unit, 0, {name: Stat(None) for name in names}, reason)


def single(value: float | None, unit: str, n: int, note: str | None = None) -> Metric:
    """A metric of one number; without a sample it has none, whatever `value` is."""
    return Metric(unit, n, {"value": Stat(value if n else None)}, note)
