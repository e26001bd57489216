from __future__ import annotations

from dataclasses import replace

from tests.fakes.summaries import (
    all_failed,
    check,
    level,
    repeated,
    run_summary,
    single,
    with_failures,
    with_metrics,
)

from enginebench.model.summary import Level, Summary, TargetSummary
from enginebench.report.answer import answer, best
from enginebench.report.points import all_series


def summary_of(*levels: Level) -> Summary:
    target = TargetSummary("vllm", "vLLM", "llama", "chat", None, levels)
    return replace(run_summary(), targets=(target,))


def rated(concurrency: int, throughput: float | None, verdict: str = "pass") -> Level:
    base = with_metrics(level(concurrency, 10, 20), output_throughput=single("tok/s", throughput))
    return replace(base, checks=(check("coalesced", verdict, 0.1),))


def test_the_best_level_has_the_highest_output_throughput() -> None:
    (series,) = all_series(summary_of(rated(1, 100), rated(8, 640), rated(64, 600)))

    found = best(series)

    assert found is not None
    assert (found.point.level, found.throughput, found.passed_over) == (8, 640, ())


def test_a_level_with_a_failed_check_is_passed_over_and_named() -> None:
    summary = summary_of(rated(1, 100), rated(8, 640), rated(64, 900, "fail"))

    (text,) = answer(summary)

    assert text.startswith("vllm gave its highest output throughput, 640 tok/s, at concurrency 8.")
    assert text.endswith("A higher number at concurrency 64 does not count: a check failed there.")


def test_a_level_that_broke_off_is_no_best_level_where_another_came_to_its_end() -> None:
    broken = replace(rated(64, 900), complete=False)

    (text,) = answer(summary_of(rated(1, 100), rated(8, 640), broken))

    assert text.startswith("vllm gave its highest output throughput, 640 tok/s, at concurrency 8.")
    assert "does not count: it broke off." in text


def test_where_every_level_broke_off_the_highest_is_shown() -> None:
    broken = [replace(rated(users, rate), complete=False) for users, rate in ((1, 100), (8, 640))]

    (text,) = answer(summary_of(*broken))

    assert "640 tok/s" in text


def test_where_every_level_failed_a_check_the_reader_is_warned() -> None:
    (text,) = answer(summary_of(rated(1, 100, "fail"), rated(8, 640, "fail")))

    assert "640 tok/s, at concurrency 8." in text
    assert text.endswith("Do not rely on it: at concurrency 8 a check failed (coalesced).")


def test_the_answer_says_what_a_user_felt_and_what_failed() -> None:
    base = level(8, 10, 20)
    failing = with_failures(base, {"timeout": 2, "error": 1}, {"idle_timeout": 3}, 0.01)

    (text,) = answer(summary_of(replace(failing, checks=())))

    assert text == (
        "vllm gave its highest output throughput, 709 tok/s, at concurrency 8. "
        "There the first token came within 62.2 ms for half of the requests (p99 n/a (n=332)); "
        "a user then read 91.9 tok/s (p50), with gaps between chunks of 18.5 ms (p99). "
        "3 of 335 requests failed."
    )


def test_a_target_where_all_failed_has_no_throughput_to_give() -> None:
    (text,) = answer(summary_of(all_failed(level(8, 10, 20))))

    assert text == "vllm has no throughput to give: 332 of 332 requests failed."


def test_a_level_without_a_request_has_no_throughput_to_give() -> None:
    nothing = replace(all_failed(level(8, 10, 20)), counts={"total": 0, "ok": 0}, errors={}, checks=())

    assert answer(summary_of(nothing)) == ["vllm has no throughput to give: no request was measured."]


def test_targets_that_could_not_be_measured_are_named() -> None:
    texts = answer(run_summary())
    nothing = replace(
        run_summary(), targets=(TargetSummary("sgl\x1b[1mang", "SGLang", None, "chat", None, ()),)
    )

    assert "tgi was not measured to its end." in texts
    assert answer(nothing) == ["sglang: no level was measured."]


def test_a_ratio_of_two_targets_comes_with_what_it_does_not_prove() -> None:
    once, five_times = answer(run_summary())[-1], answer(repeated(run_summary(), (1.0,) * 5))[-1]

    assert once == (
        "At their best levels, the output throughput of vllm was 2.52 times that of "
        "<script>alert(1)</script>. Whether a difference is more than chance is not tested here: "
        "that takes at least 5 interleaved repeats, and this run has 1."
    )
    assert five_times.endswith("Whether a difference is more than chance is not tested here.")


def test_targets_under_different_kinds_of_load_are_not_set_side_by_side() -> None:
    summary = run_summary()
    slow = summary.targets[1]
    by_rate = replace(slow, levels=tuple(replace(one, load="rate") for one in slow.levels))

    texts = answer(replace(summary, targets=(summary.targets[0], by_rate)))

    assert len(texts) == 2
    assert not any("times that of" in text for text in texts)
