from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginebench.batching.scheduler import SchedulerConfig
from enginebench.batching.simulate import Arrival, steps, token_times
from enginebench.batching.step_time import StepTime

BASE_NS, SEQ_NS, CONTEXT_NS, PREFILL_NS = 5_000_000, 40_000, 7, 20_000
PRICED = StepTime(base_ms=5, per_seq_us=40, per_ktoken_us=7, prefill_us_per_token=20)
CONSTANT = StepTime(base_ms=5, per_seq_us=0, per_ktoken_us=0, prefill_us_per_token=0)

ARRIVALS = st.lists(
    st.builds(
        Arrival,
        at_ns=st.integers(0, 60_000_000),
        prompt_tokens=st.integers(1, 40),
        output_tokens=st.integers(1, 12),
    ),
    max_size=12,
)
CONFIGS = st.builds(
    lambda max_num_seqs, spare: SchedulerConfig(max_num_seqs, max_num_seqs + spare, PRICED),
    st.integers(1, 6),
    st.integers(0, 20),
)


def test_one_user_waits_for_its_prefill_and_then_for_one_step_a_token() -> None:
    prompt_tokens, output_tokens, at_ns = 100, 50, 123
    [times] = token_times([Arrival(at_ns, prompt_tokens, output_tokens)], SchedulerConfig(step_time=PRICED))
    assert times[0] - at_ns == BASE_NS + SEQ_NS + PREFILL_NS * prompt_tokens
    held = prompt_tokens + np.arange(output_tokens - 1)
    np.testing.assert_array_equal(np.diff(times), BASE_NS + SEQ_NS + CONTEXT_NS * held)


def test_equal_users_who_arrive_together_go_in_lockstep() -> None:
    users, prompt_tokens = 16, 10
    times = token_times([Arrival(0, prompt_tokens, 20)] * users, SchedulerConfig(step_time=PRICED))
    assert times[0][0] == BASE_NS + users * (SEQ_NS + PREFILL_NS * prompt_tokens)
    held = users * (prompt_tokens + np.arange(19))
    np.testing.assert_array_equal(np.diff(times[0]), BASE_NS + users * SEQ_NS + CONTEXT_NS * held)
    for one in times:
        np.testing.assert_array_equal(one, times[0])


def test_with_one_sequence_at_a_time_a_queue_is_served_serially() -> None:
    config = SchedulerConfig(max_num_seqs=1, step_time=CONSTANT)
    times = token_times([Arrival(0, 10, 4)] * 5, config)
    assert [one.tolist() for one in times] == [
        [BASE_NS * (4 * user + token) for token in (1, 2, 3, 4)] for user in range(5)
    ]


def test_waiting_of_single_token_requests_follows_lindley() -> None:
    # One server with a constant service time (M/D/1): wait' = max(0, wait + service - gap), Lindley 1952.
    gaps = np.random.default_rng(3).exponential(BASE_NS / 0.8, 2000).astype(np.int64)
    arrived = np.cumsum(gaps)
    config = SchedulerConfig(max_num_seqs=1, step_time=CONSTANT)
    times = token_times([Arrival(int(at), 1, 1) for at in arrived], config)
    waits = [int(one[0] - at) - BASE_NS for one, at in zip(times, arrived, strict=True)]
    expected = [0]
    for gap in gaps[1:]:
        expected.append(max(0, expected[-1] + BASE_NS - int(gap)))
    assert waits == expected


def test_a_long_prompt_stalls_the_users_who_are_decoding_for_as_many_steps_as_it_has_chunks() -> None:
    config = SchedulerConfig(max_num_seqs=2, max_num_batched_tokens=101, step_time=PRICED)
    decoding, _ = token_times([Arrival(0, 1, 10), Arrival(1, 250, 1)], config)
    gaps = np.diff(decoding)
    full_chunk_ns = BASE_NS + 2 * SEQ_NS + 100 * PREFILL_NS
    own = 1 + np.arange(4)
    others = np.array([0, 100, 200, 0])
    expected = CONTEXT_NS * (own + others) + np.array(
        [full_chunk_ns, full_chunk_ns, full_chunk_ns - 50 * PREFILL_NS, BASE_NS + SEQ_NS]
    )
    np.testing.assert_array_equal(gaps[:4], expected)


def test_no_arrivals_give_no_times() -> None:
    assert token_times([], SchedulerConfig()) == []


def test_arrivals_may_come_in_any_order() -> None:
    config = SchedulerConfig(max_num_seqs=1, step_time=CONSTANT)
    late, early = token_times([Arrival(1000, 1, 1), Arrival(0, 1, 1)], config)
    assert early[0] < late[0]


@settings(max_examples=60, deadline=None)
@given(ARRIVALS, CONFIGS)
def test_every_token_is_emitted_once_in_order_and_after_the_arrival(
    arrivals: list[Arrival], config: SchedulerConfig
) -> None:
    for arrival, times in zip(arrivals, token_times(arrivals, config), strict=True):
        assert times.dtype == np.int64
        assert len(times) == arrival.output_tokens
        assert times[0] > arrival.at_ns
        assert (np.diff(times) > 0).all()


@settings(max_examples=60, deadline=None)
@given(ARRIVALS, CONFIGS)
def test_work_is_conserved(arrivals: list[Arrival], config: SchedulerConfig) -> None:
    """The engine computes each token once, and idles only when everything that arrived is done."""
    free_ns, remaining = 0, dict(enumerate(arrivals))
    n_decoded = n_prefilled = 0
    for step in steps(arrivals, config):
        assert step.start_ns == max(free_ns, min(a.at_ns for a in remaining.values()))
        assert step.n_seqs <= config.max_num_seqs
        free_ns = step.end_ns
        n_prefilled += step.prefill_tokens
        n_decoded += len(step.emitted)
        for index in step.finished:
            del remaining[index]
    assert not remaining
    assert n_prefilled == sum(a.prompt_tokens for a in arrivals)
    assert n_decoded == sum(a.output_tokens for a in arrivals)


@settings(max_examples=60, deadline=None)
@given(ARRIVALS, CONFIGS)
def test_first_tokens_come_in_order_of_arrival(arrivals: list[Arrival], config: SchedulerConfig) -> None:
    order = sorted(range(len(arrivals)), key=lambda i: arrivals[i].at_ns)
    times = token_times(arrivals, config)
    firsts = [int(times[i][0]) for i in order]
    assert firsts == sorted(firsts)


@settings(max_examples=30, deadline=None)
@given(ARRIVALS, CONFIGS, st.integers(-(10**6), 10**12))
def test_times_depend_only_on_the_arrivals_and_shift_with_them(
    arrivals: list[Arrival], config: SchedulerConfig, shift_ns: int
) -> None:
    moved = [Arrival(a.at_ns + shift_ns, a.prompt_tokens, a.output_tokens) for a in arrivals]
    for here, there in zip(token_times(arrivals, config), token_times(moved, config), strict=True):
        np.testing.assert_array_equal(here + shift_ns, there)


@pytest.mark.parametrize("step_time", [StepTime(0, 0, 0, 0), CONSTANT])
def test_a_step_may_take_no_time(step_time: StepTime) -> None:
    [times] = token_times([Arrival(5, 3, 4)], SchedulerConfig(step_time=step_time))
    assert (times - 5).tolist() == [k * step_time.duration_ns(0, 0, 0) for k in (1, 2, 3, 4)]
