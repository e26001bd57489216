from __future__ import annotations

import re
from dataclasses import replace

from tests.fakes.summaries import all_failed, distribution, level, repeated, run_summary, with_metrics

from enginebench.model.summary import Metric, Stat
from enginebench.report.points import Point, all_series
from enginebench.report.tables import (
    COLUMNS,
    cell,
    heading,
    level_text,
    measured_columns,
    ranked_columns,
    remarks,
)

BY_KEY = {(column.metric, column.stat): column for column in COLUMNS}
TTFT_P99 = BY_KEY["ttft", "p99"]
ITL_P50 = BY_KEY["itl", "p50"]


def test_a_value_is_shown_with_three_digits_and_kept_whole() -> None:
    point = Point(64, (with_metrics(level(64, 10, 20), ttft=distribution("ms", 500, 45.0449)),))

    found = cell(point, BY_KEY["ttft", "p50"])

    assert (found.text, found.value, found.mark) == ("45.0", 45.0449, None)


def test_too_small_a_sample_says_how_small() -> None:
    point = Point(4, (with_metrics(level(4, 10, 20), ttft=distribution("ms", 12, 45.0)),))

    found = cell(point, TTFT_P99)

    assert (found.text, found.value, found.mark) == ("n/a (n=12)", None, "missing")


def test_what_was_not_measured_gives_its_reason() -> None:
    metric = Metric("ms", 0, {"p50": Stat(None)}, "needs per-chunk token counts")
    point = Point(4, (with_metrics(level(4, 10, 20), itl=metric),))

    found = cell(point, ITL_P50)

    assert (found.text, found.note) == ("n/a", "needs per-chunk token counts")


def test_where_all_failed_no_number_is_shown_and_none_is_zero() -> None:
    point = Point(8, (all_failed(level(8, 10, 20)),))

    texts = {cell(point, column).text for column in COLUMNS if column.metric}
    failed = cell(point, BY_KEY[None, "failed"])

    assert texts == {"n/a"}
    assert (failed.text, failed.mark) == ("332", "failed")


def test_a_level_that_was_broken_off_has_a_star() -> None:
    assert level_text(Point(64, (level(64, 10, 20),))) == "64"
    assert level_text(Point(64, (replace(level(64, 10, 20), complete=False),))) == "64*"


def test_repeats_show_their_span() -> None:
    point = all_series(repeated(run_summary(), (1.0, 1.1, 0.9)))[0].points[-1]

    found = cell(point, BY_KEY["output_throughput", "value"])

    assert (found.text, found.bounds) == ("2,280", "2,060 to 2,510")


def test_a_column_of_samples_too_small_for_it_stands_and_says_so() -> None:
    series = replace(all_series(run_summary())[0], points=(Point(1, (level(1, 10, 20),)),))

    assert cell(series.points[0], TTFT_P99).text == "n/a (n=46)"
    assert TTFT_P99 in measured_columns([series])


def test_columns_without_a_number_are_left_out_unless_they_always_stand() -> None:
    series = all_series(run_summary())
    without_itl = [series[1]]

    assert ITL_P50 in measured_columns(series)
    assert ITL_P50 not in measured_columns(without_itl)

    nothing = replace(series[0], points=(Point(8, (all_failed(level(8, 10, 20)),)),))
    assert [c.rank for c in measured_columns([nothing])] == [1, 1, 1, 1, 1]


def test_every_column_has_a_heading_with_its_unit() -> None:
    headings = [heading(column) for column in COLUMNS]

    assert len(set(headings)) == len(headings)
    assert headings[:3] == ["ok", "failed", "output (tok/s)"]
    assert all(re.search(r"\((ms|tok/s|req/s|mean)\)$", h) for h in headings[2:])


def test_fewer_ranks_are_fewer_columns() -> None:
    series = all_series(run_summary())

    assert {c.rank for c in ranked_columns(series, 3)} == {1, 2, 3}


def test_remarks_name_the_levels_where_they_hold() -> None:
    series = all_series(run_summary())[0]
    reasoning = distribution("ms", 500, 40, note="holds 64 tokens of hidden reasoning")
    small = distribution("ms", 12, 40)
    points = (
        Point(1, (with_metrics(level(1, 10, 20), ttft=small),)),
        Point(2, (with_metrics(level(2, 10, 20), ttft=reasoning),)),
        Point(4, (with_metrics(level(4, 10, 20), ttft=reasoning),)),
    )

    assert remarks(replace(series, points=points)) == ["TTFT: holds 64 tokens of hidden reasoning, at 2, 4"]
    assert remarks(all_series(run_summary())[1]) == ["ITL: needs per-chunk token counts"]
