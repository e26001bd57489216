from __future__ import annotations

from dataclasses import replace

from tests.fakes.summaries import (
    LEVELS,
    all_failed,
    check,
    level,
    repeated,
    run_summary,
    single,
    with_failures,
    with_metrics,
)

from enginebench.model.summary import Level, Metric, Stat
from enginebench.report import points
from enginebench.report.points import Point, all_series


def point_of(*values: float | None) -> Point:
    """One level whose repeats have these throughputs."""
    repeats = [
        replace(with_metrics(level(4, 10, 20), output_throughput=single("tok/s", value)), repeat=i)
        for i, value in enumerate(values)
    ]
    return Point(4, tuple(repeats))


def test_series_follow_the_summary_and_levels_rise() -> None:
    summary = run_summary()
    shuffled = replace(
        summary, targets=tuple(replace(t, levels=tuple(reversed(t.levels))) for t in summary.targets)
    )

    series = all_series(shuffled)

    assert [s.position for s in series] == [0, 1]
    assert [p.level for p in series[0].points] == list(LEVELS)


def test_loads_of_two_kinds_are_two_series() -> None:
    summary = run_summary()
    target = summary.targets[0]
    levels = (*target.levels, replace(target.levels[0], load="rate", level=2.5))

    series = all_series(replace(summary, targets=(replace(target, levels=levels),)))

    assert [(s.load, len(s.points)) for s in series] == [("concurrency", 7), ("rate", 1)]


def test_several_repeats_give_their_median_and_their_span() -> None:
    found = points.value(point_of(110, 100, 130), "output_throughput", "value")

    assert (found.value, found.low, found.high, found.bounds) == (110, 100, 130, "repeats")


def test_a_single_repeat_keeps_its_interval_if_it_has_one() -> None:
    metric = Metric("tok/s", 50, {"value": Stat(100.0, 90.0, 112.0, "bootstrap")})
    point = Point(4, (with_metrics(level(4, 10, 20), output_throughput=metric),))

    found = points.value(point, "output_throughput", "value")

    assert (found.value, found.low, found.high, found.bounds) == (100, 90, 112, "interval")


def test_a_number_that_one_repeat_lacks_is_missing() -> None:
    found = points.value(point_of(110, None, 130), "output_throughput", "value")

    assert found.value is None
    assert found.note == "missing in 1 of 3 repeats"


def test_a_repeat_that_was_broken_off_gives_no_number_but_its_failures_count() -> None:
    whole = level(4, 10, 20)
    broken = replace(
        with_failures(level(4, 99, 20), {"timeout": 5}, {"idle_timeout": 5}, 0.5), complete=False, repeat=1
    )
    point = Point(4, (whole, broken))

    found = points.value(point, "ttft", "p50")

    assert found.value == whole.metrics["ttft"].stats["p50"].value
    assert points.n_failed(point) == 5
    assert points.errors(point) == {"idle_timeout": 5}


def test_when_every_repeat_was_broken_off_what_there_is_is_shown() -> None:
    point = Point(4, (replace(level(4, 10, 20), complete=False),))

    assert points.value(point, "ttft", "p50").value is not None
    assert not point.complete


def test_a_metric_or_statistic_that_is_not_there_is_missing() -> None:
    point = Point(4, (level(4, 10, 20),))

    assert points.value(point, "energy", "p50").value is None
    assert points.value(point, "ttft", "p999").value is None


def test_requests_that_we_cut_off_are_not_failures() -> None:
    base = level(4, 10, 20)
    point = Point(4, (replace(base, counts={**base.counts, "cancelled": 7, "empty": 1, "dropped": 2}),))

    assert points.n_failed(point) == 3


def test_a_check_has_its_worst_verdict_over_the_repeats() -> None:
    def with_verdict(verdict: str, repeat: int) -> Level:
        return replace(level(4, 10, 20), repeat=repeat, checks=(check("occupancy", verdict, repeat / 10),))

    point = Point(4, (with_verdict("pass", 0), with_verdict("fail", 1), with_verdict("warn", 2)))

    (found,) = points.checks(point)
    assert (found.verdict, found.value) == ("fail", 0.1)


def test_a_level_where_all_failed_has_no_number_at_all() -> None:
    point = Point(8, (all_failed(level(8, 10, 20)),))

    for name, metric in point.repeats[0].metrics.items():
        assert all(points.value(point, name, stat).value is None for stat in metric.stats)


def test_repeats_are_counted_over_points() -> None:
    series = all_series(repeated(run_summary()))[0]

    assert points.n_repeats(series.points) == (3, 3)
