"""Per-request quantities against numbers worked out by hand. Stamps are ms after sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.analysis.rows import chunks, record, requests

from enginebench.analysis import metrics
from enginebench.model.record import Record

NONE = math.nan


def in_ms(values: np.ndarray[Any, Any]) -> list[float]:
    return [float(v) / 1e6 for v in values]


def one(values: np.ndarray[Any, Any]) -> float:
    (value,) = in_ms(values)
    return value


ROLE = chunks(100, kind="role")
# (situation, request, TTFT, TTFA, E2E, TPOT in ms, gaps in ms)
ANSWERS: list[tuple[str, Record, float, float, float, float, list[float]]] = [
    (
        "an output of exactly one token has no time per token",
        record(0, ROLE + chunks(300), output_tokens=1),
        300, 300, 300, NONE, [],
    ),
    (
        "the wait for the first chunk is not a gap",
        record(0, ROLE + chunks(1000, 1010, 1020), output_tokens=3),
        1000, 1000, 1020, 10, [10, 10],
    ),
    (
        "an answer without any output has no first token",
        record(0, ROLE, outcome="empty", output_tokens=0),
        NONE, NONE, NONE, NONE, [],
    ),
    (
        "role, ping, empty, filter, usage and done frames are not output",
        record(
            0,
            [
                *ROLE, (110, "ping", None), (120, "empty", None), (130, "filter", None),
                (300, "content", None), (350, "content", None),
                (360, "finish", None), (550, "usage", None), (560, "done", None),
            ],
            output_tokens=2,
        ),
        300, 300, 350, 50, [50],
    ),
    (
        "reasoning is output and is no answer",
        record(
            0,
            chunks(200, kind="reasoning") + chunks(490),
            output_tokens=30, reasoning_tokens=20,
        ),
        200, 490, 490, 10, [290],
    ),
    (
        "a tool call is output and is no answer",
        record(0, chunks(200, 300, kind="tool"), output_tokens=11),
        200, NONE, 300, 10, [100],
    ),
    (
        "the server's count stands, whatever the text would be tokenised to",
        record(0, chunks(*range(300, 450, 10)), output_tokens=15, reference_tokens=1),
        300, 300, 440, 10, [10] * 14,
    ),
    (
        "four chunks carry twelve tokens",
        record(0, chunks(300, 360, 420, 480), output_tokens=12),
        300, 300, 480, 180 / 11, [60, 60, 60],
    ),
    (
        "tokens of the first chunk are not timed",
        record(0, chunks(300, 360, 420, 480, tokens=[4, 3, 3, 2]), output_tokens=12),
        300, 300, 480, 180 / 8, [60, 60, 60],
    ),
    (
        "the reported total includes an end token that has no text",
        record(0, chunks(300, 360, 420, tokens=[2, 2, 2]), output_tokens=7),
        300, 300, 420, 120 / 5, [60, 60],
    ),
    (
        "per-chunk counts suffice where the total is not reported",
        record(0, chunks(300, 360, 420, tokens=[1, 2, 2]), token_source="token_ids"),
        300, 300, 420, 30, [60, 60],
    ),
    (
        "the whole answer in one chunk",
        record(0, chunks(2000), output_tokens=50),
        2000, 2000, 2000, NONE, [],
    ),
    (
        "twenty tokens delivered in one lump",
        record(0, chunks(*[2000] * 20), output_tokens=20),
        2000, 2000, 2000, NONE, [0] * 19,
    ),
    (
        "hidden reasoning is not timed",
        record(0, chunks(*range(900, 1000, 5)), output_tokens=200, reasoning_tokens=180),
        900, 900, 995, 5, [5] * 19,
    ),
    (
        "hidden reasoning carried to the first chunk by a running count",
        record(
            0,
            chunks(*range(900, 1000, 5), tokens=[181] + [1] * 19),
            output_tokens=200, reasoning_tokens=180, token_source="continuous_usage",
        ),
        900, 900, 995, 5, [5] * 19,
    ),
    (
        "no token count at all",
        record(0, chunks(300, 350), token_source="none"),
        300, 300, 350, NONE, [50],
    ),
    (
        "fewer tokens than the first chunk holds",
        record(0, chunks(300, 350, tokens=[2, 0]), output_tokens=2, token_source="continuous_usage"),
        300, 300, 350, NONE, [50],
    ),
    (
        "a request that was never sent",
        record(None, started=0, outcome="error", error_kind="connect_failed"),
        NONE, NONE, NONE, NONE, [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "ttft", "ttfa", "e2e", "tpot", "gaps"), [row[1:] for row in ANSWERS], ids=[r[0] for r in ANSWERS]
)
def test_latencies_of_one_request(
    sent: Record, ttft: float, ttfa: float, e2e: float, tpot: float, gaps: list[float]
) -> None:
    found = requests(sent)

    assert one(metrics.ttft_ns(found)) == pytest.approx(ttft, nan_ok=True)
    assert one(metrics.ttfa_ns(found)) == pytest.approx(ttfa, nan_ok=True)
    assert one(metrics.e2e_ns(found)) == pytest.approx(e2e, nan_ok=True)
    assert one(metrics.tpot_ns(found)) == pytest.approx(tpot, nan_ok=True)
    assert in_ms(metrics.icl_ns(found, np.array([True]))) == pytest.approx(gaps)


def test_gaps_of_a_request_add_up_to_last_minus_first() -> None:
    found = requests(*(row[1] for row in ANSWERS))
    has_output = found.outputs.first >= 0

    gaps = metrics.icl_ns(found, np.ones(len(found), bool))

    spans = (metrics.e2e_ns(found) - metrics.ttft_ns(found))[has_output]
    assert gaps.sum() == spans.sum()
    assert len(gaps) == len(found.outputs.at_ns) - has_output.sum()


def test_gaps_never_reach_from_one_request_into_the_next() -> None:
    found = requests(record(0, chunks(10, 20)), record(0, chunks(500)), record(0, chunks(30, 60)))
    assert in_ms(metrics.icl_ns(found, np.ones(3, bool))) == [10, 30]
    assert in_ms(metrics.icl_ns(found, np.array([False, True, True]))) == [30]


# (situation, request, ITL samples in ms; None where the per-chunk counts are not known)
TOKEN_TIMES: list[tuple[str, Record, list[float] | None]] = [
    (
        "each gap is divided over the tokens of the chunk that ends it",
        record(0, chunks(300, 360, 420, tokens=[4, 3, 2]), output_tokens=9),
        [20, 20, 20, 30, 30],
    ),
    (
        "as many chunks as tokens: one each",
        record(0, chunks(300, 310, 340), output_tokens=3),
        [10, 30],
    ),
    (
        "more tokens than chunks: who carries them is not known",
        record(0, chunks(300, 310), output_tokens=3),
        None,
    ),
    (
        "as many chunks as tokens by a local count proves nothing",
        record(0, chunks(300, 310, 340), output_tokens=3, token_source="tokenizer"),
        None,
    ),
    (
        "a chunk without a token of its own ends no gap",
        record(0, chunks(300, 310, 340, tokens=[1, 0, 1]), output_tokens=2, token_source="token_ids"),
        [40],
    ),
    ("no count", record(0, chunks(300, 310), token_source="none"), None),
    (
        "some chunks counted, some not",
        record(0, chunks(300, 310, 320, tokens=[1, None, 1]), output_tokens=4),
        None,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "expected"), [row[1:] for row in TOKEN_TIMES], ids=[row[0] for row in TOKEN_TIMES]
)
def test_time_per_token(sent: Record, expected: list[float] | None) -> None:
    found = requests(sent)
    rows = np.array([True])

    assert metrics.itl_coverage(found, rows) == (0 if expected is None else 1, 1)
    assert in_ms(metrics.itl_ns(found, rows)) == pytest.approx(expected or [])


def test_a_single_chunk_needs_no_token_counts() -> None:
    assert metrics.itl_coverage(requests(record(0, chunks(300), output_tokens=50)), np.array([True])) == (
        0,
        0,
    )


def test_without_a_stamp_on_every_chunk_a_request_is_timed_by_its_reads() -> None:
    found = requests(
        record(0, chunks(100, 110), delay_ms=5, stamped=[True, False]),
        record(0, chunks(100, 110), delay_ms=5),
    )

    assert in_ms(metrics.ttft_ns(found)) == [105, 100]
    assert found.n_unstamped == 2
    # What is known of the client's delay is kept, and what is not known is not 0.
    assert in_ms(found.client_delay_ns) == [5, 5, 5]


def test_a_request_across_a_clock_step_is_timed_by_its_reads() -> None:
    found = requests(record(0, chunks(100, 110), delay_ms=5, clock_stepped=True))
    assert in_ms(metrics.ttft_ns(found)) == [105]
    assert len(found.client_delay_ns) == 0


def test_the_client_delay_is_taken_of_every_chunk_of_measured_requests() -> None:
    found = requests(
        record(0, [(1, "role", None), (2, "content", None), (3, "done", None)], delay_ms=0.25),
        record(0, chunks(1, 2), delay_ms=7, phase="warmup"),
        record(0, chunks(1), delay_ms=0.5, outcome="truncated"),
    )
    assert in_ms(found.client_delay_ns) == [0.25, 0.25, 0.25, 0.5]


def test_connecting_and_lag_are_apart_from_the_time_to_first_token() -> None:
    found = requests(
        record(15, chunks(115), intended=0, started=2, connected=14, connection_reused=False),
        record(3, chunks(103), intended=0, started=2),
        record(None, started=2, intended=0, outcome="error", error_kind="connect_failed"),
    )

    assert in_ms(metrics.connect_ns(found)) == pytest.approx([12, NONE, NONE], nan_ok=True)
    assert in_ms(metrics.send_lag_ns(found)) == pytest.approx([15, 3, NONE], nan_ok=True)
    assert in_ms(metrics.ttft_ns(found)) == pytest.approx([100, 100, NONE], nan_ok=True)


def test_no_duration_is_made_up_for_a_request_without_a_first_token() -> None:
    found = requests(
        record(None, started=0, outcome="error"),
        record(0, chunks(100, kind="role"), outcome="empty"),
        record(0, outcome="timeout", done=None),
    )
    for metric in (metrics.ttft_ns, metrics.ttfa_ns, metrics.e2e_ns, metrics.tpot_ns):
        assert np.isnan(metric(found)).all()
