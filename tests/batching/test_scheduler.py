from __future__ import annotations

import pytest

from enginebench.batching.scheduler import Scheduler, SchedulerConfig
from enginebench.batching.step_time import StepTime
from enginebench.errors import UserError

STEP_TIME = StepTime(base_ms=1, per_seq_us=0, per_ktoken_us=0, prefill_us_per_token=0)


def scheduler(max_num_seqs: int = 4, max_num_batched_tokens: int = 8) -> Scheduler:
    return Scheduler(SchedulerConfig(max_num_seqs, max_num_batched_tokens, STEP_TIME))


@pytest.mark.parametrize(("max_num_seqs", "max_num_batched_tokens"), [(0, 8), (-1, 8), (9, 8), (1, 0)])
def test_limits_that_would_starve_a_sequence_are_refused(
    max_num_seqs: int, max_num_batched_tokens: int
) -> None:
    with pytest.raises(UserError, match="max_num"):
        SchedulerConfig(max_num_seqs, max_num_batched_tokens)


def test_an_idle_engine_has_no_next_step() -> None:
    engine = scheduler()
    assert engine.next_start_ns(5) is None
    with pytest.raises(ValueError, match="no sequence"):
        engine.step(5)


def test_an_idle_engine_starts_at_the_arrival_and_a_busy_one_when_it_is_free() -> None:
    engine = scheduler()
    engine.add(10, 0, 1, 2)
    assert engine.next_start_ns(0) == 10
    assert engine.next_start_ns(25) == 25
    engine.step(25)
    assert engine.next_start_ns(30) == 30


def test_an_arrival_after_the_start_waits_for_the_next_step() -> None:
    engine = scheduler()
    engine.add(10, 0, 1, 2)
    engine.add(11, 1, 1, 2)
    assert engine.step(10).emitted == (0,)
    assert engine.n_waiting == 1
    assert engine.step(20).emitted == (0, 1)


def test_admission_is_in_order_of_arrival_and_stops_at_max_num_seqs() -> None:
    engine = scheduler(max_num_seqs=2)
    for seq_id in range(4):
        engine.add(0, seq_id, 1, 1 + seq_id)
    assert engine.step(0).emitted == (0, 1)
    assert engine.step(1).emitted == (1, 2)
    assert engine.step(2).emitted == (2, 3)


def test_a_prompt_over_the_budget_is_computed_in_chunks_and_emits_with_its_last() -> None:
    engine = scheduler(max_num_batched_tokens=8)
    engine.add(0, 0, 20, 2)
    steps = [engine.step(i) for i in range(4)]
    assert [step.prefill_tokens for step in steps] == [8, 8, 4, 0]
    assert [step.emitted for step in steps] == [(), (), (0,), (0,)]
    assert [step.context_tokens for step in steps] == [0, 8, 16, 20]


def test_decodes_are_served_before_prompts_and_prompts_get_the_rest_of_the_budget() -> None:
    engine = scheduler(max_num_batched_tokens=8)
    engine.add(0, 0, 1, 9)
    engine.step(0)
    engine.add(1, 1, 10, 1)
    engine.add(1, 2, 5, 1)
    first, second, third = (engine.step(i) for i in (1, 2, 3))
    assert (first.emitted, first.prefill_tokens, first.n_seqs) == ((0,), 7, 2)
    # 7 = the last 3 tokens of sequence 1 and the first 4 of sequence 2.
    assert (second.emitted, second.prefill_tokens, second.n_seqs) == ((0, 1), 7, 3)
    assert (third.emitted, third.prefill_tokens, third.n_seqs) == ((0, 2), 1, 2)


def test_a_last_chunk_of_one_token_is_still_prefill() -> None:
    engine = scheduler(max_num_batched_tokens=4)
    engine.add(0, 0, 5, 2)
    assert [engine.step(i).prefill_tokens for i in range(3)] == [4, 1, 0]


def test_the_last_token_finishes_a_sequence_and_frees_its_place_in_the_same_step() -> None:
    engine = scheduler(max_num_seqs=1)
    engine.add(0, 0, 1, 1)
    engine.add(0, 1, 1, 1)
    step = engine.step(0)
    assert step.finished == step.emitted == (0,)
    assert engine.n_running == 0
    assert engine.step(1).finished == (1,)
    assert engine.next_start_ns(2) is None


@pytest.mark.parametrize("gone", [0, 1])
def test_a_cancelled_sequence_emits_no_more_whether_it_ran_or_waited(gone: int) -> None:
    engine = scheduler(max_num_seqs=1)
    engine.add(0, 0, 1, 3)
    engine.add(0, 1, 1, 3)
    engine.step(0)
    engine.cancel(gone)
    emitted = []
    while engine.next_start_ns(1) is not None:
        emitted += engine.step(1).emitted
    assert emitted == [[1, 1, 1], [0, 0]][gone]


def test_cancelling_something_unknown_changes_nothing() -> None:
    engine = scheduler()
    engine.add(0, 0, 1, 1)
    engine.cancel(7)
    assert engine.step(0).finished == (0,)


@pytest.mark.parametrize(("prompt_tokens", "output_tokens"), [(0, 1), (1, 0)])
def test_a_sequence_without_tokens_is_refused(prompt_tokens: int, output_tokens: int) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        scheduler().add(0, 0, prompt_tokens, output_tokens)


def test_an_arrival_before_the_last_one_is_refused() -> None:
    engine = scheduler()
    engine.add(10, 0, 1, 1)
    with pytest.raises(ValueError, match="arrived before"):
        engine.add(9, 1, 1, 1)
