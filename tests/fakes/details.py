"""Made-up details beside `fakes.summaries`: curves whose values tell target and level."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.summaries import HOSTILE_NAME, LEVELS, level, run_summary

from enginebench.model.details import SHARES, Details, Distribution, Failures, Track
from enginebench.model.summary import Summary

N_STEPS = 400


def run_details() -> Details:
    return details_of(run_summary(), LEVELS)


def wide_summary() -> Summary:
    """Three targets of twenty levels each."""
    first = run_summary().targets[0]
    levels = tuple(level(4 * i, 10, 20) for i in range(1, 21))
    names = ("vllm", "sglang", "tgi")
    return replace(run_summary(), targets=tuple(replace(first, name=name, levels=levels) for name in names))


def wide_details() -> Details:
    return details_of(wide_summary(), tuple(4 * i for i in range(1, 21)))


def details_of(summary: Summary, levels: tuple[int, ...]) -> Details:
    """At its first share the TTFT of target i at a level is (i + 1) x level ms."""
    names = [target.name for target in summary.targets if target.levels]
    distributions = tuple(
        Distribution(name, "concurrency", float(one), metric, 50, _curve((i + 1) * one))
        for i, name in enumerate(names)
        for one in levels
        for metric in ("ttft", "icl", "e2e")
    )
    tracks = tuple(
        Track(name, quantity, tuple(i + step / 2 for step in range(N_STEPS)), _wave(i))
        for i, name in enumerate(names)
        for quantity in ("in_flight", "output_throughput", "requests_waiting", "kv_usage")
    )
    failures = (
        Failures(names[0], "http_429", (1.0, 2.0), (3, 1)),
        Failures(names[-1], f"odd {HOSTILE_NAME}", (50.0,), (9,)),
    )
    return Details(0.5, distributions, tracks, failures)


def _curve(least: float) -> tuple[float, ...]:
    return tuple(round(least * (1 + share * share), 3) for share in SHARES)


def _wave(i: int) -> tuple[float | None, ...]:
    return tuple(None if step % 50 == 49 else ((step + 7 * i) % 20) / 20 for step in range(N_STEPS))
