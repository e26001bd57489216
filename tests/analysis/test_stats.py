"""Percentiles, and the sample below which there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from enginebench.analysis import stats
from enginebench.model.summary import Stat


def order_statistics_bound(n: int, quantile: float) -> bool:
    """Whether ranks l >= 1 and u <= n exist with P(X < l) <= 2.5 % and P(X >= u) <= 2.5 %,
    X ~ Binomial(n, quantile): summed term by term."""
    mass = [math.comb(n, k) * quantile**k * (1 - quantile) ** (n - k) for k in range(n + 1)]
    return sum(mass[:1]) <= 0.025 and sum(mass[n:]) <= 0.025


@pytest.mark.parametrize(("quantile", "least"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368)])
def test_the_smallest_sample_that_bounds_a_quantile_on_both_sides(quantile: float, least: int) -> None:
    assert stats.minimum_samples(quantile) == least
    assert order_statistics_bound(least, quantile)
    assert not order_statistics_bound(least - 1, quantile)


def test_percentiles_interpolate_linearly() -> None:
    found = stats.distribution(np.arange(1.0, 501.0), "ms", "")
    assert {name: stat.value for name, stat in found.stats.items()} == pytest.approx(
        {"p50": 250.5, "p90": 450.1, "p95": 475.05, "p99": 495.01}
    )
    assert (found.n, found.note) == (500, None)


def test_three_samples_have_no_percentile_at_all() -> None:
    found = stats.distribution(np.array([10.0, 20.0, 30.0]), "ms", "")
    assert set(found.stats.values()) == {Stat(None)}
    assert (found.n, found.note) == (3, "p50, p90, p95, p99: n/a (n=3)")


def test_percentiles_appear_one_after_another_as_the_sample_grows() -> None:
    def given(n: int) -> list[str]:
        found = stats.distribution(np.ones(n), "ms", "")
        return [name for name, stat in found.stats.items() if stat.value is not None]

    assert [given(n) for n in (5, 6, 36, 72, 368)] == [
        [],
        ["p50"],
        ["p50", "p90"],
        ["p50", "p90", "p95"],
        ["p50", "p90", "p95", "p99"],
    ]
    assert stats.distribution(np.ones(50), "ms", "").note == "p95, p99: n/a (n=50)"


def test_no_sample_gives_the_reason() -> None:
    found = stats.latency(np.array([math.nan]), "no output was streamed")
    assert (found.n, found.note) == (0, "no output was streamed")
    assert set(found.stats.values()) == {Stat(None)}


def test_a_speed_percentile_is_what_that_share_of_users_reaches() -> None:
    per_token = stats.distribution(np.arange(1.0, 401.0), "ms", "")
    speed = stats.speed(per_token)

    p99 = speed.stats["p99"].value
    assert p99 is not None
    assert p99 == pytest.approx(1000 / 396.01)
    assert np.mean(1000 / np.arange(1.0, 401.0) >= p99) == pytest.approx(0.99)
    assert (speed.unit, speed.n) == ("tok/s", 400)


def test_a_speed_is_missing_where_the_time_is() -> None:
    assert stats.speed(stats.distribution(np.ones(3), "ms", "")).stats["p50"] == Stat(None)


def test_durations_a_little_below_zero_are_zero_and_others_are_left_out() -> None:
    found = stats.usable(np.array([-2e6, -1e6, -1.0, 0.0, 5.0, math.nan]))
    assert found.tolist() == [0.0, 0.0, 0.0, 5.0]


def test_a_single_number_without_a_sample_is_missing() -> None:
    assert stats.single(0.0, "req/s", 0).stats["value"] == Stat(None)
    assert stats.single(2.5, "req/s", 5).stats["value"] == Stat(2.5)
