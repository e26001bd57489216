from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.fakes.summaries import (
    HOSTILE_NAME,
    LEVELS,
    all_failed,
    distribution,
    level,
    repeated,
    run_summary,
    single,
    with_metrics,
)

from enginebench.model.summary import Level
from enginebench.report.charts import Chart, charts
from enginebench.report.points import Series, all_series


def chart_of(series: tuple[Series, ...], name: str) -> Chart:
    return next(chart for chart in charts(series) if chart.id == f"{name}-concurrency")


def lines(chart: Chart) -> list[dict[str, Any]]:
    return [trace for trace in chart.figure["data"] if trace["meta"]["role"] == "line"]


def bands(chart: Chart) -> list[dict[str, Any]]:
    return [trace for trace in chart.figure["data"] if trace["meta"]["role"] == "band"]


def of_levels(*levels: Level) -> tuple[Series, ...]:
    target = replace(run_summary().targets[0], levels=levels)
    return all_series(replace(run_summary(), targets=(target,)))


@pytest.mark.parametrize(
    ("name", "metric", "stat"),
    [
        ("throughput", "output_throughput", "value"),
        ("ttft", "ttft", "p50"),
        ("icl", "icl", "p50"),
        ("tpot", "tpot", "p50"),
        ("e2e", "e2e", "p50"),
    ],
)
def test_a_line_is_drawn_through_the_values_of_the_summary(name: str, metric: str, stat: str) -> None:
    summary = run_summary()

    chart = chart_of(all_series(summary), name)

    for target, line in zip(summary.targets, lines(chart), strict=False):
        assert line["x"] == list(LEVELS)
        assert line["y"] == [lv.metrics[metric].stats[stat].value for lv in target.levels]


def test_one_line_a_target_each_with_a_marker_of_its_own() -> None:
    for chart in charts(all_series(run_summary())):
        assert [line["meta"]["series"] for line in lines(chart)] == [0, 1]
        assert len({line["marker"]["symbol"] for line in lines(chart)}) == 2


def test_a_band_reaches_from_p50_to_the_percentile_and_stops_at_a_gap() -> None:
    def with_ttft(concurrency: int, n: int, p50: float) -> Level:
        return with_metrics(level(concurrency, 10, 20), ttft=distribution("ms", n, p50))

    series = of_levels(
        with_ttft(1, 500, 10), with_ttft(2, 500, 20), with_ttft(4, 50, 30), with_ttft(8, 500, 40)
    )

    to_p99, to_p90 = bands(chart_of(series, "ttft"))

    assert to_p99["x"] == [1, 2, 2, 1, None, 8, 8, None]
    assert to_p99["y"] == [10, 20, 40, 20, None, 40, 80, None]
    assert to_p90["x"] == [1, 2, 4, 8, 8, 4, 2, 1, None]


def test_what_is_not_drawn_is_told() -> None:
    chart = chart_of(all_series(run_summary()), "ttft")

    assert chart.missing == (
        "vllm: p99 at 1, 2, 4 and 8",
        f"{HOSTILE_NAME}: p90 at 1",
        f"{HOSTILE_NAME}: p99 at 1, 2, 4 and 8",
    )


def test_a_level_without_a_number_is_a_gap_and_not_a_zero() -> None:
    series = of_levels(level(1, 10, 20), all_failed(level(2, 10, 20)), level(4, 10, 20))

    for chart in charts(series):
        for line in lines(chart):
            assert line["y"][1] is None
            assert 0 not in line["y"]
            assert line["connectgaps"] is False


def test_latencies_far_apart_get_a_logarithmic_axis_that_says_so() -> None:
    series = all_series(run_summary())

    ttft, icl = (chart_of(series, name).figure["layout"]["yaxis"] for name in ("ttft", "icl"))

    assert ttft["type"] == "log"
    assert ttft["title"]["text"] == "TTFT (ms, log scale)"
    assert ttft["ticktext"][:4] == ["10", "20", "50", "100"]
    assert icl["rangemode"] == "tozero"
    assert icl["title"]["text"] == "ICL (ms)"


def test_over_four_decades_only_powers_of_ten_are_marked() -> None:
    levels = [
        with_metrics(level(c, 10, 20), ttft=distribution("ms", 500, p50)) for c, p50 in ((1, 2), (2, 9_000))
    ]

    axis = chart_of(of_levels(*levels), "ttft").figure["layout"]["yaxis"]

    assert axis["ticktext"] == ["1", "10", "100", "1,000", "10,000"]


def test_repeats_are_drawn_as_error_bars() -> None:
    found = lines(chart_of(all_series(repeated(run_summary(), (1.0, 1.1, 0.8))), "throughput"))[0]
    single_run = lines(chart_of(all_series(run_summary()), "throughput"))[0]

    assert found["error_y"]["array"][0] == pytest.approx(0.1 * found["y"][0], rel=1e-4)
    assert found["error_y"]["arrayminus"][0] == pytest.approx(0.2 * found["y"][0], rel=1e-4)
    assert "error_y" not in single_run


def test_levels_at_the_same_place_share_a_label() -> None:
    def placed(concurrency: int, speed: float, throughput: float) -> Level:
        return with_metrics(
            level(concurrency, 10, 20),
            per_user_tps=distribution("tok/s", 500, speed, 0.9),
            output_throughput=single("tok/s", throughput),
        )

    series = of_levels(placed(1, 100, 100), placed(2, 80, 500), placed(4, 79, 502), placed(8, 78, 505))

    assert lines(chart_of(series, "speed"))[0]["text"] == ["1", "2 to 8", "", ""]


def test_names_are_escaped_for_the_markup_that_plotly_reads() -> None:
    for chart in charts(all_series(run_summary())):
        assert lines(chart)[1]["name"] == "&lt;script&gt;alert(1)&lt;/script&gt;"


def test_hovering_tells_all_percentiles_and_the_counts() -> None:
    found = lines(chart_of(all_series(run_summary()), "ttft"))[1]

    assert found["customdata"][5] == (
        "<b>concurrency 32</b><br>p50 2,450 ms<br>p90 4,830 ms<br>p95 5,720 ms<br>p99 7,590 ms"
        "<br>425 ok, 3 failed"
    )
    assert "p99 n/a (n=31)" in found["customdata"][0]


def test_figures_are_strict_json() -> None:
    for chart in charts(all_series(repeated(run_summary()))):
        json.dumps(chart.figure, allow_nan=False)


def test_a_single_level_and_no_series_can_be_drawn() -> None:
    (line,) = lines(chart_of(of_levels(level(8, 10, 20)), "throughput"))

    assert line["x"] == [8]
    assert charts(()) == []


def test_each_kind_of_load_has_its_own_charts() -> None:
    target = run_summary().targets[0]
    mixed = (*target.levels, replace(target.levels[0], load="rate", level=0.0))

    found = charts(all_series(replace(run_summary(), targets=(replace(target, levels=mixed),))))

    assert len({chart.id for chart in found}) == len(found) == 12
