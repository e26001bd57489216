"""The live server keeps the times of the pure model: exactly, for the arrivals it recorded."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from enginebench.batching.simulate import Arrival, steps, token_times
from enginebench.mock import MockConfig, MockServer, SchedulerConfig, StepTime, Truth, running

STEP_TIME = StepTime(base_ms=0.3, per_seq_us=20, per_ktoken_us=50, prefill_us_per_token=2)

Ask = tuple[int, int]
"""Bytes of the prompt, and output tokens."""


def send(server: MockServer, asks: Sequence[Ask], n_clients: int) -> list[Truth]:
    """What the server says it did, in order of arrival."""
    with httpx.Client(trust_env=False, timeout=20) as http, ThreadPoolExecutor(n_clients) as pool:

        def one(ask: Ask) -> int:
            body = {"prompt": "x" * ask[0], "max_tokens": ask[1], "stream": True}
            return http.post(f"{server.base_url}/completions", json=body).text.count("data: {")

        assert list(pool.map(one, asks)) == [n_tokens for _, n_tokens in asks]
    return sorted(server.truth(), key=lambda truth: truth.arrived_ns)


def arrivals(truths: Sequence[Truth]) -> list[Arrival]:
    return [Arrival(truth.arrived_ns, truth.prompt_tokens, truth.output_tokens) for truth in truths]


@pytest.mark.parametrize(
    ("max_num_seqs", "max_num_batched_tokens"),
    [(1, 2048), (3, 16), (64, 2048)],
    ids=["one at a time", "tight", "roomy"],
)
def test_intended_times_are_the_models_to_the_nanosecond(
    max_num_seqs: int, max_num_batched_tokens: int
) -> None:
    config = SchedulerConfig(max_num_seqs, max_num_batched_tokens, STEP_TIME)
    asks = [(1 + 37 * i % 300, 1 + 11 * i % 30) for i in range(40)]
    with running(MockConfig(scheduler=config)) as server:
        truths = send(server, asks, n_clients=8)
    expected = token_times(arrivals(truths), config)
    for truth, times in zip(truths, expected, strict=True):
        content = [at for kind, at in zip(truth.kind, truth.intended_ns, strict=True) if kind == "content"]
        assert content == times.tolist()


def test_tokens_are_sent_in_the_models_order() -> None:
    config = SchedulerConfig(max_num_seqs=3, max_num_batched_tokens=16, step_time=STEP_TIME)
    with running(MockConfig(scheduler=config)) as server:
        truths = send(server, [(1 + 29 * i % 200, 1 + 7 * i % 20) for i in range(24)], n_clients=6)
    sent = sorted(
        (at, index)
        for index, truth in enumerate(truths)
        for kind, at in zip(truth.kind, truth.sent_ns, strict=True)
        if kind == "content"
    )
    expected = [index for step in steps(arrivals(truths), config) for index in step.emitted]
    assert [index for _, index in sent] == expected
