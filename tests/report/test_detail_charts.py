"""Charts of single requests and of time, as figures."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.details import run_details
from tests.fakes.summaries import HOSTILE_NAME, LEVELS, run_summary

from enginebench.model.details import SHARES, Details
from enginebench.report.detail_charts import choices, detail_charts

CHARTS = {chart.id: chart for chart in detail_charts(run_details(), run_summary())}


def test_there_is_a_chart_for_each_thing_that_was_seen() -> None:
    assert list(CHARTS) == [
        "distribution-ttft-concurrency",
        "distribution-icl-concurrency",
        "distribution-e2e-concurrency",
        "time-in_flight",
        "time-output_throughput",
        "time-requests_waiting",
        "time-kv_usage",
        "time-failures",
    ]


def test_what_no_engine_told_has_no_chart() -> None:
    told = replace(
        run_details(), tracks=tuple(t for t in run_details().tracks if t.quantity == "in_flight"), failures=()
    )

    assert [chart.id for chart in detail_charts(told, run_summary()) if not chart.choices] == [
        "time-in_flight"
    ]
    assert detail_charts(Details(0.0, (), (), ()), run_summary()) == []


def test_a_distribution_rises_from_0_to_100_percent_for_each_target_and_level() -> None:
    traces = CHARTS["distribution-ttft-concurrency"].figure["data"]

    assert len(traces) == 2 * len(LEVELS)
    assert {len(trace["x"]) for trace in traces} == {len(SHARES)}
    assert all(trace["y"][0] == 0 and trace["y"][-1] == 100 for trace in traces)
    assert {trace["meta"]["choice"] for trace in traces} == {str(level) for level in LEVELS}


def test_levels_are_offered_in_rising_order() -> None:
    offered = [value for value, _ in choices(list(CHARTS.values()))]

    assert offered == [str(level) for level in sorted(LEVELS)]


def test_the_kv_cache_is_shown_in_percent() -> None:
    values = [v for t in CHARTS["time-kv_usage"].figure["data"] for v in t["y"] if v is not None]

    assert 1 < max(values) <= 100


def test_failures_are_marks_that_grow_with_their_number_and_hostile_kinds_are_escaped() -> None:
    first, second = CHARTS["time-failures"].figure["data"]

    assert first["customdata"] == ["3 requests", "1 request"]
    assert first["marker"]["size"][0] > first["marker"]["size"][1]
    assert HOSTILE_NAME not in second["y"][0]
    assert second["y"][0].startswith("odd &lt;script&gt;")
