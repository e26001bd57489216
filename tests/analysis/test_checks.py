"""Every check where it passes, where it does not, and where it has nothing to judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.analysis.rows import chunks, only_level, record, refused, result, run, steady

from enginebench.analysis.checks import CHECKS
from enginebench.analysis.summary import summarise
from enginebench.model.plan import CellResult
from enginebench.model.record import Record


def busy(n: int, **facts: Any) -> list[Record]:
    """One user's n requests of 100 ms each, 10 tokens in 10 chunks, one after another."""
    answer = {"output_tokens": 10, **facts}
    return [record(100 * i, steady(100 * i + 10, 100 * i + 100, 10), **answer) for i in range(n)]


def after(n: int, *others: Record) -> list[Record]:
    return [*busy(n), *others]


TIMED = result(span_ms=(0, 4000))


def sampled(cpu_s: float) -> CellResult:
    return result(span_ms=(0, 100), client={"sampler_cpu_s": cpu_s, "sampler_wall_s": 10.0})


def counting(n_tokens: float) -> CellResult:
    """A cell whose engine counted so many tokens."""
    return replace(TIMED, engine_counters={"generation_tokens": n_tokens})


LAGGING = [
    record(100 * i + 5, steady(100 * i + 15, 100 * i + 105, 10), intended=100 * i, output_tokens=10)
    for i in range(40)
]
HELD_UP = [record(200 * i, steady(200 * i + 10, 200 * i + 100, 10), output_tokens=10) for i in range(20)]
TEMPLATES = [
    record(0, chunks(10), asked_prompt_tokens=asked, prompt_tokens=asked + 40) for asked in (100, 200, 300)
]
SPLIT_FINER = [
    record(0, chunks(10), asked_prompt_tokens=asked, prompt_tokens=8 + asked * 11 // 10)
    for asked in (100, 200, 300)
]

# (check, verdict or None where it has nothing to judge, value, records, cell)
CASES: list[tuple[str, str | None, float | None, list[Record], CellResult]] = [
    ("error_rate", "pass", 0.0, busy(40), TIMED),
    ("error_rate", "fail", 0.5, after(20, *(refused(50 * i) for i in range(20))), TIMED),
    ("error_rate", "pass", 1 / 200, after(199, refused(0)), TIMED),
    ("error_rate", "fail", 1 / 100, after(99, refused(0)), TIMED),
    ("error_rate", "pass", 0.0, after(1, record(0, outcome="cancelled", done=None)), TIMED),
    ("error_rate", "fail", 0.5, after(1, record(0, outcome="empty", done=10)), TIMED),
    ("error_rate", None, None, busy(3, phase="warmup"), TIMED),
    ("unfinished", "pass", 0.0, after(1, refused(0)), TIMED),
    ("unfinished", "warn", 0.5, after(1, record(0, chunks(10), outcome="cancelled", done=None)), TIMED),
    ("unfinished", None, None, [], TIMED),
    ("few_samples", "pass", 36.0, busy(36), TIMED),
    ("few_samples", "warn", 35.0, busy(35), TIMED),
    ("impossible_times", "pass", 0.0, busy(1), TIMED),
    ("impossible_times", "pass", 0.0, [record(0, chunks(10, 9.5))], TIMED),
    ("impossible_times", "fail", 1.0, [record(0, chunks(10, 20, 15))], TIMED),
    ("impossible_times", "fail", 2.0, [record(50, chunks(20), intended=0)], TIMED),
    ("clock_step", "pass", 0.0, busy(1), TIMED),
    ("clock_step", "warn", 1.0, after(3, *busy(1, clock_stepped=True)), TIMED),
    ("clock_step", None, None, [], TIMED),
    ("no_stamps", "pass", 0.0, busy(1), TIMED),
    ("no_stamps", "warn", 0.25, after(3, *busy(1, stamped=False)), TIMED),
    ("no_stamps", None, None, [refused(0)], TIMED),
    ("client_delay", "pass", 0.1, busy(1), TIMED),
    ("client_delay", "warn", 25.0, busy(1, delay_ms=25), TIMED),
    ("client_delay", None, None, busy(1, stamped=False), TIMED),
    ("coalesced", "pass", 0.05, [*busy(1), *busy(1, coalesced=[3])], TIMED),
    ("coalesced", "fail", 0.1, [*busy(1, coalesced=[3])], TIMED),
    ("coalesced", "pass", 0.0, after(1, *busy(9, coalesced=[3], phase="warmup")), TIMED),
    ("coalesced", None, None, [refused(0)], TIMED),
    ("client_cpu", "pass", 0.3, busy(1), result(span_ms=(0, 100), client={"cpu_s": 3.0, "wall_s": 10.0})),
    ("client_cpu", "warn", 0.9, busy(1), result(span_ms=(0, 100), client={"cpu_s": 9.0, "wall_s": 10.0})),
    ("client_cpu", None, None, busy(1), result(span_ms=(0, 100), client={"cpu_s": None, "wall_s": 10.0})),
    ("sampler_cpu", "pass", 0.01, busy(1), sampled(0.1)),
    ("sampler_cpu", "warn", 0.2, busy(1), sampled(2.0)),
    ("sampler_cpu", None, None, busy(1), TIMED),
    ("shared_cores", None, None, busy(1), TIMED),
    ("send_lag", "pass", 0.0, busy(2), TIMED),
    ("send_lag", "warn", 0.05, LAGGING, TIMED),
    ("send_lag", None, None, [refused(0)], TIMED),
    ("occupancy", "pass", 1.0, busy(40), TIMED),
    ("occupancy", "warn", 0.5, HELD_UP, TIMED),
    ("occupancy", None, None, [refused(0)], TIMED),
    ("token_source", "pass", 1.0, busy(2), TIMED),
    ("token_source", "warn", 0.5, after(1, *busy(1, token_source="logprobs")), TIMED),
    ("token_source", "fail", 0.5, after(1, *busy(1, token_source="none", output_tokens=None)), TIMED),
    ("token_source", "fail", 0.0, [record(0, chunks(300, 350), token_source="none")], TIMED),
    ("token_source", None, None, [refused(0)], TIMED),
    ("engine_tokens", "pass", 1.0, busy(2), counting(20.0)),
    ("engine_tokens", "warn", 0.5, busy(2), counting(40.0)),
    ("engine_tokens", None, None, after(2, refused(0)), counting(20.0)),
    ("engine_tokens", None, None, busy(2), TIMED),
    ("output_length", "pass", 0.975, busy(1, asked_output_tokens=600, output_tokens=585), TIMED),
    ("output_length", "warn", 280 / 600, busy(1, asked_output_tokens=600, output_tokens=280), TIMED),
    ("output_length", "fail", 2.0, busy(1, asked_output_tokens=5), TIMED),
    ("fewer_tokens_than_chunks", "pass", 0.0, busy(2), TIMED),
    ("fewer_tokens_than_chunks", "fail", 0.5, after(1, *busy(1, output_tokens=3)), TIMED),
    ("fewer_tokens_than_chunks", None, None, busy(1, token_source="none", output_tokens=None), TIMED),
    ("output_length", None, None, busy(1, token_source="none", output_tokens=None), TIMED),
    ("prompt_length", "pass", 1.0, busy(1, asked_prompt_tokens=100, prompt_tokens=108), TIMED),
    ("prompt_length", "pass", 1.0, TEMPLATES, TIMED),
    ("prompt_length", "warn", 1.05, SPLIT_FINER, TIMED),
    ("prompt_length", "warn", 3.0, busy(1, asked_prompt_tokens=64, prompt_tokens=320), TIMED),
    ("prompt_length", "warn", 0.8, busy(1, asked_prompt_tokens=100, prompt_tokens=80), TIMED),
    ("prompt_length", None, None, busy(1, prompt_tokens=None), TIMED),
    ("prefix_cache", "pass", 0.0, busy(1, prompt_tokens=100, cached_tokens=0), TIMED),
    ("prefix_cache", "warn", 0.48, after(0, *busy(1, prompt_tokens=100, cached_tokens=48)), TIMED),
    ("prefix_cache", None, None, busy(1, prompt_tokens=100), TIMED),
    ("hidden_reasoning", "warn", 0.9, busy(1, output_tokens=100, reasoning_tokens=90), TIMED),
    ("hidden_reasoning", None, None, busy(1, reasoning_tokens=0), TIMED),
    (
        "hidden_reasoning", None, None,
        [record(0, chunks(1, kind="reasoning") + chunks(2), output_tokens=30, reasoning_tokens=20)], TIMED,
    ),
    ("buffered_stream", "pass", 0.0, busy(2), TIMED),
    ("buffered_stream", "warn", 1.0, [record(0, chunks(*[2000] * 20), output_tokens=20)], TIMED),
    ("buffered_stream", None, None, [record(0, chunks(20, 20), output_tokens=2)], TIMED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "verdict", "value", "records", "cell"), CASES, ids=[f"{c[0]}-{c[1]}-{c[2]}" for c in CASES]
)
def test_a_check_on_its_situation(
    name: str, verdict: str | None, value: float | None, records: list[Record], cell: CellResult
) -> None:
    found = [check for check in only_level(records, cell).checks if check["name"] == name]

    if verdict is None:
        assert found == []
    else:
        (check,) = found
        assert check["verdict"] == verdict
        assert check["value"] == pytest.approx(value)
        assert bool(check["advice"]) == (verdict != "pass")


def test_every_check_of_the_list_was_shown_to_object() -> None:
    shown = {case[0] for case in CASES if case[1] in ("warn", "fail")}
    assert shown | {"shared_cores"} == CHECKS.keys()


@pytest.mark.parametrize(("shares", "verdict", "value"), [(True, "warn", 1.0), (False, "pass", 0.0)])
def test_an_engine_on_the_cores_of_the_client_is_warned_of(shares: bool, verdict: str, value: float) -> None:
    target = {"name": "t", "shares_cores": shares}
    (level,) = summarise(run(busy(1), TIMED, targets=[target])).targets[0].levels
    (check,) = [check for check in level.checks if check["name"] == "shared_cores"]
    assert (check["verdict"], check["value"]) == (verdict, value)
    assert bool(check["advice"]) == shares


def test_a_warm_prefix_cache_is_no_surprise_where_prompts_repeat() -> None:
    asked = run(busy(1, prompt_tokens=100, cached_tokens=48), TIMED)
    asked.meta["scenario"]["workload"]["unique_prompts"] = False
    (level,) = summarise(asked).targets[0].levels
    assert "prefix_cache" not in {check["name"] for check in level.checks}


def test_the_advice_of_a_check_is_the_same_on_every_level() -> None:
    said = {
        check["advice"]
        for asked in (50, 100, 200)
        for check in only_level(busy(1, asked_output_tokens=asked), TIMED).checks
        if check["name"] == "output_length"
    }
    assert len(said) == 1
