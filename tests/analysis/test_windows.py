"""Windows, what arrives in them, and how many requests are in flight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.rows import chunks, record, refused, requests, result, steady, window

from enginebench.analysis import windows
from enginebench.analysis.requests import Requests
from enginebench.model.plan import CellResult
from enginebench.model.record import Record
from enginebench.model.summary import LevelWindow

# Two requests of 101 tokens side by side, then a straggler of 10 s.
STRAGGLER = [
    record(0, steady(200, 1200, 101), output_tokens=101),
    record(0, steady(200, 1200, 101), output_tokens=101),
    record(1000, steady(1200, 11200, 101), output_tokens=101),
]


def throughput(window: LevelWindow, found: Requests) -> float:
    return windows.output_arrived(window, found).n_tokens / window.duration_s


def test_a_straggler_stretches_the_whole_run_and_not_the_steady_window() -> None:
    found = requests(*STRAGGLER)
    assert throughput(window(0, 11200), found) == pytest.approx(27.05, rel=1e-3)
    assert throughput(window(0, 1200), found) == pytest.approx(168.3, rel=1e-2)


# Three users; each request takes 100 ms; 6 measured after 3 of warm-up.
CLOSED_LOOP = [
    *(record(0 + i, chunks(100 + i), phase="warmup") for i in range(3)),
    *(record(100 + i, chunks(200 + i)) for i in range(3)),
    *(record(200 + i, chunks(300 + i)) for i in range(3)),
]
SPANS: list[tuple[str, CellResult | None, list[Record], LevelWindow | None]] = [
    (
        "a cell by duration has the planned window",
        result(level=3, span_ms=(100, 250)), CLOSED_LOOP, window(100, 250, "time"),
    ),
    (
        "a cell by count of twice its cap: while the cap was held",
        result(level=3, n_requests=6), CLOSED_LOOP, window(100, 202, "held"),
    ),
    (
        "a cell by count of less: all of it",
        result(level=4, n_requests=6), CLOSED_LOOP, window(100, 302, "whole"),
    ),
    (
        "a cell by duration that broke off ends at the last event",
        result(level=3, span_ms=(100, None), finished=False), CLOSED_LOOP, window(100, 302, "time"),
    ),
    (
        "a cell by duration that broke off in the drain has its window",
        result(level=3, span_ms=(100, 250), finished=False), CLOSED_LOOP, window(100, 250, "time"),
    ),
    (
        "a cell by count that broke off ends at the last event",
        result(level=3, n_requests=600, finished=False),
        [*CLOSED_LOOP, record(300, chunks(340), done=None, outcome="cancelled")],
        window(100, 340, "whole"),
    ),
    (
        "records without a cell",
        None, CLOSED_LOOP, window(100, 302, "whole"),
    ),
    (
        "a request that got no answer ends where it was sent",
        result(level=1, n_requests=1), [record(100, done=None, outcome="timeout")], None,
    ),
    (
        "a failed request that took long belongs to the whole",
        result(level=2, n_requests=2),
        [record(100, chunks(200)), refused(100, 900)],
        window(100, 1000, "whole"),
    ),
    ("nothing but warm-up", result(level=3, n_requests=6), CLOSED_LOOP[:3], None),
    ("no request at all", result(level=3, span_ms=(100, None), finished=False), [], None),
    ("a cell that never got to its window", result(level=3, n_requests=6, finished=False), [], None),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "records", "expected"), [s[1:] for s in SPANS], ids=[s[0] for s in SPANS])
def test_the_window_of_a_cell(
    cell: CellResult | None, records: list[Record], expected: LevelWindow | None
) -> None:
    assert windows.find_window(cell, requests(*records)) == expected


def test_tokens_count_by_arrival_whatever_the_phase_of_their_request() -> None:
    found = requests(
        record(0, steady(100, 400, 4), output_tokens=4, phase="warmup"),
        record(300, steady(400, 700, 4), output_tokens=4),
    )
    # Arrivals at 100, 200, 300, 400 and 400, 500, 600, 700: those in (250, 550].
    arrived = windows.output_arrived(window(250, 550), found)
    assert (arrived.n_tokens, arrived.n_requests, arrived.n_uncounted) == (4, 2, 0)


def test_an_arrival_at_the_border_of_two_windows_is_counted_once() -> None:
    found = requests(record(0, chunks(100, 200, 300, tokens=1), output_tokens=3))
    halves = [windows.output_arrived(window(a, b), found).n_tokens for a, b in ((0, 200), (200, 400))]
    assert halves == [2, 1]


@pytest.mark.parametrize("outcome", ["truncated", "timeout", "error", "cancelled", "empty", "rejected"])
def test_tokens_of_a_request_that_did_not_succeed_do_not_count(outcome: str) -> None:
    found = requests(
        record(0, steady(10, 90, 9), output_tokens=9), record(0, steady(10, 90, 9), outcome=outcome)
    )
    arrived = windows.output_arrived(window(0, 100), found)
    assert (arrived.n_tokens, arrived.n_requests) == (9, 1)


def test_unknown_tokens_per_chunk_are_spread_evenly() -> None:
    found = requests(record(0, chunks(300, 360, 420, 480), output_tokens=12))
    assert windows.output_arrived(window(0, 400), found).n_tokens == 6


def test_known_tokens_per_chunk_are_counted_where_they_arrived() -> None:
    found = requests(record(0, chunks(300, 360, 420, 480, tokens=[7, 3, 1, 1]), output_tokens=12))
    assert windows.output_arrived(window(0, 400), found).n_tokens == 10


def test_an_end_token_without_text_arrives_with_the_last_chunk() -> None:
    found = requests(record(0, chunks(10, 20, 30, tokens=[2, 3, 1]), output_tokens=7))
    counts = [windows.output_arrived(window(0, end), found).n_tokens for end in (10, 20, 30)]
    assert counts == [2, 5, 7]


def test_hidden_reasoning_never_arrives() -> None:
    found = requests(record(0, chunks(*range(900, 1000, 5)), output_tokens=200, reasoning_tokens=180))
    assert windows.output_arrived(window(0, 1000), found).n_tokens == 20


def test_hidden_reasoning_that_a_running_count_carried_to_the_first_chunk_does_not_arrive_with_it() -> None:
    stream = chunks(*range(900, 1000, 5), tokens=[181] + [1] * 19)
    found = requests(
        record(0, stream, output_tokens=200, reasoning_tokens=180, token_source="continuous_usage")
    )
    assert windows.output_arrived(window(0, 1000), found).n_tokens == 20


def test_requests_whose_tokens_no_one_told_are_reported_and_not_guessed() -> None:
    found = requests(
        record(0, chunks(10, 20), output_tokens=2), record(0, chunks(10, 20), token_source="none")
    )
    arrived = windows.output_arrived(window(0, 100), found)
    assert (arrived.n_tokens, arrived.n_requests, arrived.n_uncounted) == (2, 1, 1)


def test_prompt_tokens_count_when_the_first_output_arrives() -> None:
    found = requests(
        record(0, chunks(90, 150), prompt_tokens=100),
        record(0, chunks(110, 150), prompt_tokens=40),
        record(0, chunks(50), prompt_tokens=None),
        record(0, chunks(50), prompt_tokens=7, outcome="truncated"),
    )
    arrived = windows.prompt_arrived(window(0, 100), found)
    assert (arrived.n_tokens, arrived.n_requests, arrived.n_uncounted) == (100, 1, 1)


def test_a_request_counts_in_the_rate_when_it_ends_inside_and_succeeded() -> None:
    found = requests(
        record(0, chunks(90), done=95, phase="warmup"),
        record(0, chunks(90), done=105),
        refused(50),
    )
    assert windows.completed(window(0, 100), found) == 1


def test_requests_in_flight_are_cut_at_the_borders_of_the_window() -> None:
    found = requests(
        record(0, chunks(150), phase="warmup"),
        record(120, chunks(500)),
        record(50, chunks(90), phase="warmup"),
        record(700, chunks(800), phase="drain"),
    )
    flight = windows.in_flight(window(100, 200), found)
    assert flight.mean == pytest.approx((50 + 80) / 100)
    assert (flight.peak, flight.n_requests) == (2, 2)


def test_a_request_that_ends_as_the_next_is_sent_is_not_in_flight_with_it() -> None:
    found = requests(record(0, chunks(10)), record(10, chunks(20)), record(20, chunks(30)))
    flight = windows.in_flight(window(0, 30), found)
    assert (flight.mean, flight.peak) == (1.0, 1)


def test_a_request_that_was_cut_off_is_in_flight_to_the_end_and_a_broken_one_to_its_last_event() -> None:
    cut = requests(record(0, chunks(20), done=None, outcome="cancelled"))
    broken = requests(record(0, chunks(20), done=None, outcome="truncated"))
    assert windows.in_flight(window(0, 100), cut).mean == 1.0
    assert windows.in_flight(window(0, 100), broken).mean == pytest.approx(0.2)


def test_a_request_that_was_never_sent_is_not_in_flight() -> None:
    flight = windows.in_flight(window(0, 100), requests(record(None, started=5, outcome="error")))
    assert (flight.mean, flight.peak, flight.n_requests) == (0.0, 0, 0)


spans = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(1, 300)).map(lambda s: (s[0], s[0] + s[1])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=50, deadline=None)
@given(spans)
def test_littles_law_is_an_identity_over_a_window_that_starts_and_ends_empty(
    spans: list[tuple[int, int]],
) -> None:
    found = requests(*(record(sent, chunks(done)) for sent, done in spans))
    whole = window(0, 2000)

    rate = windows.completed(whole, found) / whole.duration_s
    mean_s = np.mean([(done - sent) / 1000 for sent, done in spans])
    assert windows.in_flight(whole, found).mean == pytest.approx(rate * mean_s, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(spans, st.integers(0, 900), st.integers(1, 500))
def test_requests_in_flight_equal_a_count_ms_by_ms(
    spans: list[tuple[int, int]], start: int, length: int
) -> None:
    found = requests(*(record(sent, chunks(done)) for sent, done in spans))
    counted = [sum(sent <= now < done for sent, done in spans) for now in range(start, start + length)]

    flight = windows.in_flight(window(start, start + length), found)

    assert flight.mean == pytest.approx(np.mean(counted))
    assert flight.peak == max(counted)
