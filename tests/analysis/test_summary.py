"""From a run to its summary and to plain data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.rows import (
    chunks,
    only_level,
    record,
    refused,
    result,
    run,
    steady,
    summary,
)

import enginebench
from enginebench.analysis.checks import CHECKS
from enginebench.analysis.levels import DISTRIBUTIONS, RATES
from enginebench.analysis.summary import summarise, to_plain
from enginebench.model.record import OUTCOMES, Record
from enginebench.model.summary import Level, Metric
from enginebench.store import folder
from enginebench.store.records import RecordWriter

WINDOW = result(span_ms=(0, 10_000))


def value(metric: Metric, name: str = "value") -> float | None:
    return metric.stats[name].value


def strict(text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


HALF_REFUSED = [
    *(record(200 * i, steady(200 * i + 10, 200 * i + 1000, 100), output_tokens=100) for i in range(45)),
    *(record(9_000, steady(9_010, 10_000, 100), output_tokens=100) for _ in range(5)),
    *(refused(200 * i) for i in range(50)),
]


def test_a_server_that_refuses_half_the_load_does_not_look_better() -> None:
    level = only_level(HALF_REFUSED, WINDOW)

    assert level.counts["ok"] == 50
    assert level.counts["rejected"] == 50
    assert level.counts["total"] == 100
    assert level.errors == {"http_429": 50}
    assert value(level.metrics["request_rate"]) == 5.0
    assert value(level.metrics["output_throughput"]) == 500.0
    assert value(level.metrics["e2e"], "p50") == 1000.0
    assert level.metrics["e2e"].n == 50


def test_where_every_request_failed_no_number_is_given() -> None:
    level = only_level(
        [refused(i, 2, outcome="error", error_kind="connection_reset") for i in range(20)], WINDOW
    )

    assert (level.counts["ok"], level.counts["total"]) == (0, 20)
    assert level.errors == {"connection_reset": 20}
    for metric in level.metrics.values():
        assert {stat.value for stat in metric.stats.values()} == {None}
        assert metric.note == "no request succeeded"
    assert [c["verdict"] for c in level.checks if c["name"] == "error_rate"] == ["fail"]


def test_outcomes_always_add_up_to_the_total() -> None:
    level = only_level([record(0, outcome=o, done=1) for o in OUTCOMES for _ in range(3)], WINDOW)
    assert {o: level.counts[o] for o in OUTCOMES} == dict.fromkeys(OUTCOMES, 3)
    assert level.counts["total"] == 3 * len(OUTCOMES)
    assert level.errors == {o: 3 for o in OUTCOMES if o != "ok"}


def test_warm_up_counts_in_the_window_and_nowhere_else() -> None:
    level = only_level(
        [
            record(0, steady(100, 1000, 10), output_tokens=10, phase="warmup", prompt_tokens=5),
            record(1000, steady(1100, 2000, 10), output_tokens=10, prompt_tokens=7),
        ],
        result(span_ms=(500, 2500)),
    )
    assert level.counts["total"] == 1
    assert level.metrics["ttft"].n == 1
    assert level.metrics["prompt_tokens"].n == 1
    # Chunks at 600 to 1000 and at 1100 to 2000.
    assert value(level.metrics["output_throughput"]) == 15 / 2
    assert value(level.metrics["total_throughput"]) == (15 + 7) / 2
    assert value(level.metrics["request_rate"]) == 1.0


def test_prompt_throughput_uses_the_servers_count_with_its_template() -> None:
    level = only_level(
        [record(0, chunks(300, 350), prompt_tokens=108, asked_prompt_tokens=100, output_tokens=2)],
        result(span_ms=(0, 1000)),
    )
    assert value(level.metrics["total_throughput"]) == 110.0


def test_a_level_without_token_counts_has_latencies_and_no_throughput() -> None:
    level = only_level(
        [record(0, chunks(300, 350), token_source="none") for _ in range(6)], result(span_ms=(0, 1000))
    )
    assert value(level.metrics["ttft"], "p50") == 300.0
    assert value(level.metrics["output_throughput"]) is None
    assert level.metrics["output_throughput"].note == "6 requests have no token count"
    assert value(level.metrics["tpot"], "p50") is None
    assert level.metrics["output_tokens"].note == "the server reported no count; counted by none 6"


def test_a_level_with_a_few_uncounted_requests_says_so() -> None:
    counted = [record(0, chunks(300, 350), output_tokens=2) for _ in range(200)]
    level = only_level(
        [*counted, record(0, chunks(300, 350), token_source="none")], result(span_ms=(0, 1000))
    )
    assert value(level.metrics["output_throughput"]) == 400.0
    assert level.metrics["output_throughput"].note == "without 1 requests that have no token count"


def test_hidden_reasoning_is_marked_on_the_time_to_first_token() -> None:
    level = only_level(
        [record(0, chunks(*range(900, 1000, 5)), output_tokens=200, reasoning_tokens=180)] * 6,
        result(span_ms=(0, 1000)),
    )
    assert level.metrics["ttft"].note == "p90, p95, p99: n/a (n=6); holds 1080 tokens of hidden reasoning"
    assert value(level.metrics["tpot"], "p50") == 5.0
    assert value(level.metrics["per_user_tps"], "p50") == 200.0
    assert value(level.metrics["output_tokens"], "p50") == 200.0


def test_time_per_token_is_not_claimed_where_some_requests_bundle_tokens() -> None:
    single = [record(0, chunks(10, 20, 30), output_tokens=3) for _ in range(9)]
    level = only_level([*single, record(0, chunks(10, 30), output_tokens=3)], WINDOW)

    assert value(level.metrics["itl"], "p50") is None
    assert level.metrics["itl"].note == (
        "needs per-chunk token counts, which 1 of 10 requests do not have; see ICL"
    )
    assert value(level.metrics["icl"], "p50") == 10.0
    assert value(only_level(single, WINDOW).metrics["itl"], "p50") == 10.0


def test_nothing_ended_inside_a_short_window() -> None:
    level = only_level([record(0, chunks(300, 900), output_tokens=2)], result(span_ms=(0, 100)))
    assert value(level.metrics["request_rate"]) is None
    assert level.metrics["request_rate"].note == "no request ended inside the window"
    assert value(level.metrics["output_throughput"]) is None
    assert value(level.metrics["concurrency"]) == 1.0
    assert value(level.metrics["concurrency"], "peak") == 1.0


def test_a_level_that_broke_off_is_marked() -> None:
    records = [
        record(0, chunks(300, 900), output_tokens=2),
        record(10, chunks(400, 950), outcome="cancelled", done=None),
    ]
    level = only_level(records, result(span_ms=(0, None), finished=False))
    assert not level.complete
    assert level.window is not None
    assert level.window.duration_s == 0.95
    note = level.metrics["output_throughput"].note
    assert note == "the level broke off: requests still open then are not counted"


def test_a_cell_that_never_began_is_a_level_without_numbers() -> None:
    level = only_level([], result(span_ms=None, n_requests=6, finished=False))
    assert (level.complete, level.window, level.counts["total"]) == (False, None, 0)
    assert {metric.note for metric in level.metrics.values()} == {"nothing was measured"}


def test_levels_are_kept_apart_and_listed_by_level_and_repeat() -> None:
    cells = [(8, 0), (1, 0), (8, 1), (1, 1)]
    records = [
        record(0, chunks(10 * level + repeat), level=float(level), repeat=repeat, target=target)
        for level, repeat in cells
        for target in ("b", "a")
        for _ in range(6)
    ]
    found = summarise(
        run(
            records,
            *(result(target=t, level=lv, repeat=r, span_ms=(0, 100)) for lv, r in cells for t in ("b", "a")),
            targets=[{"name": "b", "base_url": "http://b/v1"}, {"name": "a", "engine": "vLLM"}],
        )
    )

    assert [target.name for target in found.targets] == ["b", "a"]
    for target in found.targets:
        shown = [(lv.level, lv.repeat, value(lv.metrics["ttft"], "p50")) for lv in target.levels]
        assert shown == [(1, 0, 10), (1, 1, 11), (8, 0, 80), (8, 1, 81)]


def test_a_target_without_any_level_is_listed_with_its_problem() -> None:
    targets = [
        {"name": "t", "engine": "vLLM", "version": "0.9", "problem": None},
        {"name": "gone", "engine": None, "base_url": "http://gone/v1", "problem": "port taken"},
    ]
    found = summarise(run([], targets=targets))
    assert [(t.name, t.engine, t.problem, t.levels) for t in found.targets] == [
        ("t", "vLLM 0.9", None, ()),
        ("gone", "http://gone/v1", "port taken", ()),
    ]


def test_records_that_run_json_knows_nothing_of_are_not_lost() -> None:
    found = summary([record(0, chunks(10), target="stray", level=4.0)])
    assert [t.name for t in found.targets] == ["t", "stray"]
    (level,) = found.targets[1].levels
    assert (level.level, level.complete, level.counts["ok"]) == (4.0, False, 1)


def test_of_two_results_of_one_cell_the_later_one_stands() -> None:
    (target,) = summary(
        [record(0, chunks(10))], result(span_ms=(0, None), finished=False), result(span_ms=(0, 50))
    ).targets
    (level,) = target.levels
    assert level.complete


def test_plain_data_is_strict_json_of_the_published_shape() -> None:
    plain = strict(json.dumps(to_plain(summary(HALF_REFUSED, WINDOW)), allow_nan=False))

    assert list(plain) == [
        "format",
        "definitions",
        "name",
        "status",
        "created_utc",
        "host",
        "notes",
        "parity",
        "targets",
    ]
    (target,) = plain["targets"]
    assert list(target) == ["name", "engine", "model", "endpoint", "problem", "levels"]
    (level,) = target["levels"]
    assert level["window"] == {
        "kind": "time",
        "start_ns": 2**60 + 1,
        "end_ns": 2**60 + 1 + 10_000_000_000,
        "duration_s": 10.0,
    }
    assert level["metrics"].keys() == DISTRIBUTIONS.keys() | RATES.keys()
    assert level["metrics"]["output_throughput"] == {
        "unit": "tok/s",
        "n": 50,
        "note": None,
        "value": {"value": 500.0, "low": None, "high": None, "method": None},
    }
    assert level["metrics"]["ttft"]["note"] == "p95, p99: n/a (n=50)"
    assert level["metrics"]["ttft"]["p99"] == {"value": None, "low": None, "high": None, "method": None}
    assert {check["name"] for check in level["checks"]} <= CHECKS.keys()


def test_a_number_that_json_cannot_hold_becomes_null() -> None:
    found = summary([record(0, chunks(10))], WINDOW)
    level = found.targets[0].levels[0]
    odd = replace(level, checks=({"name": "x", "verdict": "pass", "value": float("inf"), "advice": ""},))
    target = replace(found.targets[0], levels=(odd,))
    plain = to_plain(replace(found, targets=(target,)))
    assert plain["targets"][0]["levels"][0]["checks"][0]["value"] is None


times = st.integers(0, 3000)


@st.composite
def successes(draw: st.DrawFn) -> Record:
    sent = draw(times)
    n = draw(st.integers(1, 6))
    gaps = draw(st.lists(st.integers(1, 400), min_size=n, max_size=n))
    stream = chunks(*(sent + sum(gaps[: i + 1]) for i in range(n)))
    return record(
        sent, stream, output_tokens=draw(st.integers(n, 20)), prompt_tokens=draw(st.integers(1, 50))
    )


@st.composite
def failures(draw: st.DrawFn) -> Record:
    ok = draw(successes())
    outcome = draw(st.sampled_from([o for o in OUTCOMES if o != "ok"]))
    kind = draw(st.sampled_from(["http_500", "idle_timeout", None]))
    return replace(ok, outcome=outcome, error_kind=kind)


CLIENT_METRICS = {"client_delay", "concurrency"}


def numbers(level: Level) -> dict[tuple[str, str], float | None]:
    return {(name, s): stat.value for name, m in level.metrics.items() for s, stat in m.stats.items()}


@settings(max_examples=60, deadline=None)
@given(st.lists(successes(), min_size=6, max_size=40), st.lists(failures(), min_size=1, max_size=10))
def test_failed_requests_change_no_number_of_the_successful_ones(
    good: list[Record], bad: list[Record]
) -> None:
    cell = result(span_ms=(500, 2500))
    before, with_failures = only_level(good, cell), only_level([*good, *bad], cell)

    old, new = numbers(before), numbers(with_failures)
    for key in old:
        if key[0] not in CLIENT_METRICS:
            assert new[key] == (old[key] if old[key] is None else pytest.approx(old[key])), key
    assert with_failures.counts["ok"] == before.counts["ok"]
    assert with_failures.counts["total"] == before.counts["total"] + len(bad)


@settings(max_examples=60, deadline=None)
@given(st.lists(successes() | failures(), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_records_is_irrelevant(records: list[Record], chance: Any) -> None:
    records = [replace(r, level=float(1 + i % 2)) for i, r in enumerate(records)]
    cells = [result(level=1, span_ms=(500, 2500)), result(level=2, n_requests=3)]
    shuffled = chance.sample(records, len(records))

    for one, other in zip(
        summary(records, *cells).targets[0].levels, summary(shuffled, *cells).targets[0].levels, strict=True
    ):
        assert one.counts == other.counts
        assert one.errors == other.errors
        assert one.window == other.window
        for key, number in numbers(one).items():
            assert numbers(other)[key] == (None if number is None else pytest.approx(number)), key


def test_a_run_folder_gives_the_summary_of_its_records(tmp_path: Path) -> None:
    made = folder.create(tmp_path / "run", "x")
    asked = run(HALF_REFUSED, WINDOW)
    with RecordWriter(made.records_path(WINDOW.cell, 0)) as writer:
        for one in HALF_REFUSED:
            writer.add(one)
    made.write_meta({**asked.meta, "cells": [folder.plain_cell(WINDOW)]})

    loaded = enginebench.load(made.path)

    assert loaded.summary() == summarise(asked)
