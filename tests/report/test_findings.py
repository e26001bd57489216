from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fakes.summaries import all_failed, check, distribution, level, run_summary, with_metrics

from enginebench.report.findings import (
    check_value,
    client_delay_line,
    cut_off_line,
    error_rows,
    finding_line,
    findings,
)
from enginebench.report.points import Point, Series, all_series


def series_with(*levels_checks: tuple[int, tuple[dict, ...]]) -> Series:  # type: ignore[type-arg]
    base = all_series(run_summary())[0]
    levels = tuple(replace(level(c, 10, 20), checks=checks) for c, checks in levels_checks)
    target = replace(base.target, levels=levels)
    return replace(base, target=target, points=tuple(Point(one.level, (one,)) for one in levels))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("error_rate", 0.0065, "0.650 %"),
        ("occupancy", 0.912, "91.2 %"),
        ("client_delay", 12.34, "12.3 ms"),
        ("few_samples", 31.0, "31"),
        ("error_rate", None, "n/a"),
        ("token_source", "us\x1b[1mage", "usage"),
    ],
)
def test_a_check_shows_its_value_in_its_own_unit(name: str, value: object, text: str) -> None:
    assert check_value(name, value) == text


def test_a_check_that_says_the_same_on_several_levels_is_one_line() -> None:
    def late(share: float) -> dict[str, object]:
        return dict(check("send_lag", "warn", share, "Requests left late."))

    series = series_with((1, ()), (8, (late(0.02),)), (64, (late(0.05),)))

    assert [finding_line(f) for f in findings(series)] == [
        "warn: send lag 2.00 % at 8, 5.00 % at 64. Requests left late."
    ]


def test_equal_values_are_given_once_and_all_levels_are_not_listed() -> None:
    bad = dict(check("no_stamps", "warn", 1.0, "No stamps."))

    everywhere = series_with((1, (bad,)), (8, (bad,)))
    somewhere = series_with((1, (bad,)), (8, (bad,)), (64, ()))

    assert [f.where for f in findings(everywhere)] == ["100 % at every level"]
    assert [f.where for f in findings(somewhere)] == ["100 % at concurrency 1, 8"]


def test_failed_checks_come_before_warnings_and_passes_not_at_all() -> None:
    series = series_with(
        (
            1,
            (
                check("few_samples", "warn", 3.0),
                check("error_rate", "fail", 0.2),
                check("occupancy", "pass", 1),
            ),
        )
    )

    assert [(f.verdict, f.name) for f in findings(series)] == [
        ("fail", "error rate"),
        ("warn", "few samples"),
    ]


def test_errors_are_listed_by_kind_without_those_we_ended_ourselves() -> None:
    series = all_series(run_summary())[1]
    first, *rest = series.points
    cut = replace(first.repeats[0], errors={"cancelled": 3, "interrupted": 2, "http_429": 1})
    series = replace(series, points=(Point(first.level, (cut,)), *rest))

    rows = error_rows(series)

    assert [(row.kind, row.n) for row in rows] == [
        ("http_429", 91),
        ("http_503", 6),
        ("idle_timeout", 2),
        ("in_band_error", 1),
    ]
    assert rows[0].where == "1 at 1, 90 at 64"


def test_requests_cut_off_by_us_are_told_apart() -> None:
    fast, slow = all_series(run_summary())

    assert cut_off_line(fast) is None
    assert cut_off_line(slow) == "4 requests cut off at the end of a level: neither ok nor failed"


def test_the_clients_own_delay_is_that_of_its_worst_level() -> None:
    series = all_series(run_summary())[0]

    assert client_delay_line(series) == (
        "client delay p99 0.273 ms at most (at concurrency 64), coalesced 0.0800 %"
    )


def test_an_unknown_client_delay_is_never_zero() -> None:
    base = all_series(run_summary())[0]
    nothing = distribution("ms", 0, 1.0, note="chunks have no kernel stamps")
    unstamped = with_metrics(level(4, 10, 20), client_delay=nothing)
    few = with_metrics(level(4, 10, 20), client_delay=distribution("ms", 12, 1.0))

    def line(one: object) -> str:
        target = replace(base.target, levels=(one,))  # type: ignore[arg-type]
        return client_delay_line(replace(base, target=target, points=(Point(4, (one,)),)))  # type: ignore[arg-type]

    assert line(replace(unstamped, checks=())) == "client delay n/a: chunks have no kernel stamps"
    assert line(replace(few, checks=())) == "client delay n/a (n=12)"
    assert line(all_failed(few)) == "client delay n/a: no request ended well"
