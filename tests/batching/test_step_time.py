from __future__ import annotations

import math

import pytest

from enginebench.batching.step_time import StepTime
from enginebench.errors import UserError

NOTHING = {"base_ms": 0.0, "per_seq_us": 0.0, "per_ktoken_us": 0.0, "prefill_us_per_token": 0.0}


@pytest.mark.parametrize(
    ("term", "value", "duration_ns"),
    [
        ("base_ms", 8.0, 8_000_000),
        ("per_seq_us", 1.5, 4_500),  # 3 sequences
        ("per_ktoken_us", 10.0, 20_000),  # 2,000 tokens
        ("prefill_us_per_token", 0.25, 1_250),  # 5 tokens
    ],
)
def test_each_term_is_priced_in_its_own_unit(term: str, value: float, duration_ns: int) -> None:
    step_time = StepTime(**{**NOTHING, term: value})
    assert step_time.duration_ns(n_seqs=3, context_tokens=2000, prefill_tokens=5) == duration_ns


def test_terms_add_up() -> None:
    step_time = StepTime(base_ms=1, per_seq_us=2, per_ktoken_us=3, prefill_us_per_token=4)
    assert step_time.duration_ns(n_seqs=10, context_tokens=100, prefill_tokens=50) == (
        1_000_000 + 20_000 + 300 + 200_000
    )


@pytest.mark.parametrize("term", NOTHING)
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_a_time_that_cannot_be_is_refused_by_name(term: str, value: float) -> None:
    with pytest.raises(UserError, match=term):
        StepTime(**{**NOTHING, term: value})
