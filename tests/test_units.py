from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginebench.units import format_duration, parse_duration_ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("10s", 10_000_000_000),
        ("500ms", 500_000_000),
        ("1.5h", 5_400_000_000_000),
        ("2m", 120_000_000_000),
        ("2min", 120_000_000_000),
        (" 7 us ", 7_000),
        ("3ns", 3),
        (0, 0),
        (10, 10_000_000_000),
        (0.25, 250_000_000),
    ],
)
def test_a_duration_is_a_number_with_a_unit_or_seconds(text: str | float, ns: int) -> None:
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", "s", "10", "10 parsecs", "-1s", "1e3s", -1, float("nan"), 1e300, "9" * 400 + "s"]
)
def test_anything_else_is_refused(text: str | float) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ns(text)


@pytest.mark.parametrize("value", [True, None, [1], {"s": 1}])
def test_values_of_other_types_are_refused_and_do_not_crash(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ns(value)  # type: ignore[arg-type]


@given(st.integers(0, 2**53))
def test_a_formatted_duration_reads_back(ns: int) -> None:
    assert parse_duration_ns(format_duration(ns)) == ns


def test_the_shortest_exact_unit_is_chosen() -> None:
    assert [format_duration(ns) for ns in (0, 1, 1_000, 90_000_000_000, 7_200_000_000_000)] == [
        "0s", "1ns", "1us", "90s", "2h",
    ]  # fmt: skip
