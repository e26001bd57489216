"""Percentiles from an engine's histograms."""

from dataclasses import replace

import pytest
from tests.analysis.rows import result

from enginebench.analysis.server_side import quantile, server_side
from enginebench.model.plan import CellResult, Histogram


def observed(histogram: Histogram, name: str = "ttft_seconds") -> CellResult:
    return replace(result(), engine_histograms={name: histogram})


EVEN = Histogram((0.1, 0.2, 0.4), (100, 200, 400), 80.0, 400)


@pytest.mark.parametrize(
    ("q", "seconds"),
    [(0.125, 0.05), (0.25, 0.1), (0.375, 0.15), (0.5, 0.2), (0.75, 0.3), (1.0, 0.4)],
)
def test_a_quantile_is_linear_inside_its_bucket_and_the_first_begins_at_0(q, seconds):
    assert quantile(EVEN, q) == pytest.approx(seconds)


def test_empty_buckets_hold_no_quantile():
    assert quantile(Histogram((0.1, 0.2, 0.4), (0, 0, 10), 3.0, 10), 0.5) == pytest.approx(0.3)


def test_beyond_the_last_bound_nothing_is_known():
    histogram = Histogram((0.1,), (300,), 99.0, 400)
    assert quantile(histogram, 0.75) == pytest.approx(0.1)
    assert quantile(histogram, 0.76) is None


def test_metrics_are_in_ms_and_say_how_they_were_made():
    metric = server_side(observed(EVEN))["server_ttft"]
    assert (metric.unit, metric.n) == ("ms", 400)
    assert metric.stats["p50"].value == pytest.approx(200.0)
    assert metric.stats["p99"].value == pytest.approx(396.0)
    assert metric.note == "linear inside the engine's buckets"


def test_a_percentile_with_too_few_observations_or_beyond_the_buckets_is_absent_and_the_note_says_why():
    metric = server_side(observed(Histogram((0.1,), (20,), 9.0, 40)))["server_ttft"]
    assert metric.stats["p50"].value == pytest.approx(100.0)
    assert metric.stats["p90"].value is None
    assert metric.stats["p99"].value is None
    assert metric.note == (
        "linear inside the engine's buckets; p90: beyond the last of them (0.1 s); "
        "p95: n/a (n=40); p99: n/a (n=40)"
    )


@pytest.mark.parametrize(
    "cell",
    [None, result(), observed(Histogram((0.1,), (0,), 0.0, 0))],
    ids=["no cell", "no histogram", "empty"],
)
def test_without_observations_there_is_no_number(cell):
    for metric in server_side(cell).values():
        assert metric.n == 0
        assert metric.note
        assert {stat.value for stat in metric.stats.values()} == {None}


def test_each_metric_has_its_own_histogram():
    found = server_side(observed(EVEN, "itl_seconds"))
    assert (found["server_ttft"].n, found["server_itl"].n) == (0, 400)
