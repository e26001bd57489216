from __future__ import annotations

import statistics

import pytest

from enginebench.model.scenario import TokenCount
from enginebench.workload.lengths import mean_tokens, token_count

N = 20_000
UNIFORMS = [(i + 0.5) / N for i in range(N)]


@pytest.mark.parametrize(
    ("count", "uniform", "length"),
    [
        (TokenCount("fixed", 512), 0.9, 512),
        (TokenCount("fixed", 1), 0.1, 1),
        (TokenCount("uniform", 15, low=10, high=20), 1e-16, 10),
        (TokenCount("uniform", 15, low=10, high=20), 1 - 1e-16, 20),
        (TokenCount("uniform", 15, low=10, high=20), 0.5, 15),
        (TokenCount("uniform", 7, low=7, high=7), 0.99, 7),
        (TokenCount("normal", 100, stdev=20), 0.5, 100),
        (TokenCount("normal", 100, stdev=20), 0.8413447460685429, 120),
        (TokenCount("normal", 100, stdev=20, low=90), 0.01, 90),
        (TokenCount("normal", 100, stdev=20, high=110), 0.99, 110),
        (TokenCount("normal", 3, stdev=50), 0.001, 1),
        (TokenCount("normal", 100, stdev=0), 0.3, 100),
    ],
)
def test_a_number_between_0_and_1_becomes_a_length(count: TokenCount, uniform: float, length: int) -> None:
    assert token_count(count, uniform) == length


@pytest.mark.parametrize(
    "count",
    [
        TokenCount("fixed", 512),
        TokenCount("uniform", 15, low=10, high=20),
        TokenCount("normal", 512, stdev=100),
        TokenCount("normal", 100, stdev=80),
        TokenCount("normal", 100, stdev=80, low=50, high=120),
        TokenCount("normal", 100, stdev=0),
    ],
)
def test_the_expected_length_is_the_mean_of_what_is_drawn(count: TokenCount) -> None:
    drawn = statistics.fmean(token_count(count, uniform) for uniform in UNIFORMS)
    assert mean_tokens(count) == pytest.approx(drawn, rel=1e-3)


def test_every_length_of_a_uniform_range_is_equally_likely() -> None:
    drawn = [token_count(TokenCount("uniform", 2.5, low=1, high=4), uniform) for uniform in UNIFORMS]
    assert [drawn.count(length) for length in (1, 2, 3, 4)] == [N // 4] * 4
