"""A made-up summary with everything a report must cope with: two engines over seven levels, small
samples, failures, a level that was broken off, a metric that cannot be had, and hostile names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from enginebench.model.summary import Level, LevelWindow, Metric, Stat, Summary, TargetSummary

LEVELS = (1, 2, 4, 8, 16, 32, 64)
SECOND_NS = 1_000_000_000
HOSTILE_NAME = "<script>alert(1)</script>"
HOSTILE_URL = "http://10.0.0.7:8000/v1?<b>"
HOSTILE_MODEL = "evil/\x1b[31mred\x1b[0m-7b`|*x*|[a](javascript:alert(2))\u202egnp"
MINIMUM_SAMPLES = {"p50": 6, "p90": 36, "p95": 72, "p99": 368}


def distribution(unit: str, n: int, p50: float, spread: float = 2.0, note: str | None = None) -> Metric:
    """Percentiles that rise by the factor `spread` from p50 to p99; those with too few samples are None."""
    factors = {"p50": 1.0, "p90": spread**0.6, "p95": spread**0.75, "p99": spread}
    stats = {
        name: Stat(six_digits(p50 * factor) if n >= MINIMUM_SAMPLES[name] else None)
        for name, factor in factors.items()
    }
    if note is None and None in [stat.value for stat in stats.values()]:
        lacking = ", ".join(name for name, stat in stats.items() if stat.value is None)
        note = f"{lacking}: n/a (n={n})"
    return Metric(unit, n, stats, note)


def single(unit: str, value: float | None, n: int = 1) -> Metric:
    return Metric(unit, n, {"value": Stat(None if value is None else six_digits(value))})


def six_digits(value: float) -> float:
    """So that golden files do not hang on the last bit of somebody's pow()."""
    return float(f"{value:.6g}")


def level(concurrency: int, step_ms: float, prefill_ms: float, *, max_num_seqs: int = 32) -> Level:
    """A level of a batching engine: the step grows with the batch; above `max_num_seqs` requests queue."""
    batch = min(concurrency, max_num_seqs)
    tpot_ms = step_ms + 0.11 * batch
    ttft_ms = prefill_ms * (1 + 0.4 * batch**0.8)
    service_ms = ttft_ms + 127 * tpot_ms
    if concurrency > max_num_seqs:
        ttft_ms += service_ms * (concurrency - max_num_seqs) / max_num_seqs
    e2e_ms = ttft_ms + 127 * tpot_ms
    rate = concurrency / (e2e_ms / 1000)
    n = round(rate * 60)
    metrics = {
        "ttft": distribution("ms", n, ttft_ms, 3.1),
        "ttfa": distribution("ms", n, ttft_ms, 3.1),
        "icl": distribution("ms", n * 127, tpot_ms, 1.7),
        "itl": distribution("ms", n * 127, tpot_ms, 1.7),
        "tpot": distribution("ms", n, tpot_ms, 1.2),
        "e2e": distribution("ms", n, e2e_ms, 1.25),
        "per_user_tps": distribution("tok/s", n, 1000 / tpot_ms, 1 / 1.2),
        "output_throughput": single("tok/s", rate * 128, n),
        "total_throughput": single("tok/s", rate * (128 + 527), n),
        "request_rate": single("req/s", rate, n),
        "concurrency": single("requests", concurrency * 0.997, n),
        "client_delay": distribution("ms", n * 130, 0.021, 5.0 + concurrency / 8),
        "send_lag": distribution("ms", n, 0.034, 3.0),
        "connect": distribution("ms", 0, 0.2, note="every connection was reused"),
        "prompt_tokens": single("tokens", 527, n),
        "output_tokens": single("tokens", 128, n),
    }
    window = LevelWindow("time", 1000 * SECOND_NS, 1060 * SECOND_NS, 60.0)
    checks = (
        check("error_rate", "pass", 0.0),
        check("client_delay", "pass", 0.11),
        check("coalesced", "pass", 0.0008),
        check("token_source", "pass", 1.0),
        check("occupancy", "pass", 0.997),
        check("output_length", "pass", 1.0),
        check(
            "few_samples",
            "pass" if n >= 36 else "warn",
            float(n),
            "So few successful requests give no p90 (it takes 36): measure longer.",
        ),
    )
    return Level("concurrency", concurrency, 0, True, window, {"total": n, "ok": n}, {}, metrics, checks)


def check(name: str, verdict: str, value: Any, advice: str = "") -> Mapping[str, Any]:
    return {"name": name, "verdict": verdict, "value": value, "advice": advice}


def with_failures(base: Level, failed: Mapping[str, int], kinds: Mapping[str, int], share: float) -> Level:
    n = sum(failed.values())
    counts = {**base.counts, **failed, "total": base.counts["total"] + n}
    bad = check("error_rate", "fail", share, "This share of the requests failed; look at the errors by kind.")
    checks = tuple(bad if c["name"] == "error_rate" else c for c in base.checks)
    return replace(base, counts=counts, errors=kinds, checks=checks)


def with_metrics(base: Level, **metrics: Metric) -> Level:
    return replace(base, metrics={**base.metrics, **metrics})


def all_failed(base: Level) -> Level:
    """Every request was refused: no metric has a value, and none is 0."""
    n = base.counts["total"]
    none = {
        name: Metric(metric.unit, 0, dict.fromkeys(metric.stats, Stat(None)), "no request ended well")
        for name, metric in base.metrics.items()
    }
    checks = (
        check("error_rate", "fail", 1.0, "This share of the requests failed; look at the errors by kind."),
    )
    return replace(
        base, counts={"total": n, "ok": 0, "rejected": n}, errors={"http_429": n}, metrics=none, checks=checks
    )


def run_summary() -> Summary:
    """Two targets over seven levels, and a third that never answered."""
    fast = [level(c, 9.2, 24.0) for c in LEVELS]
    no_tokens = Metric(
        "ms", 0, dict.fromkeys(("p50", "p90", "p95", "p99"), Stat(None)), "needs per-chunk token counts"
    )
    slow = [with_metrics(level(c, 14.5, 41.0, max_num_seqs=16), itl=no_tokens) for c in LEVELS]
    slow[5] = with_failures(
        slow[5], {"timeout": 2, "error": 1}, {"idle_timeout": 2, "in_band_error": 1}, 0.0065
    )
    slow[6] = with_failures(
        slow[6], {"rejected": 96, "cancelled": 4}, {"http_429": 90, "http_503 \x1b]0;pwned\x07": 6}, 0.184
    )
    targets = (
        TargetSummary("vllm", "vLLM 0.11.2", "meta-llama/Llama-3.1-8B-Instruct", "chat", None, tuple(fast)),
        TargetSummary(HOSTILE_NAME, HOSTILE_URL, HOSTILE_MODEL, "completions", None, tuple(slow)),
        TargetSummary(
            "tgi", "Text Generation Inference", "meta-llama/Llama-3.1-8B-Instruct", "chat",
            "tgi exited with 1 before it was stopped; last lines of logs/tgi.txt:\n"
            "\x1b[31mERROR\x1b[0m CUDA out of memory & <memory>\n  Tried to allocate 2.00 GiB", (),
        ),
    )  # fmt: skip
    return Summary(
        1, "enginebench-1", "two engines, one model", "done", "2026-03-01T09:30:00Z", "bench-01", targets, ()
    )


def repeated(summary: Summary, factors: tuple[float, ...] = (1.0, 1.04, 0.97)) -> Summary:
    """The same targets with one repeat for each factor, all values multiplied by it."""
    targets = tuple(
        replace(
            target,
            levels=tuple(
                _scaled(one, repeat, factor) for repeat, factor in enumerate(factors) for one in target.levels
            ),
        )
        for target in summary.targets
    )
    return replace(summary, targets=targets)


def _scaled(base: Level, repeat: int, factor: float) -> Level:
    metrics = {
        name: replace(
            metric,
            stats={
                k: Stat(None if s.value is None else six_digits(s.value * factor))
                for k, s in metric.stats.items()
            },
        )
        for name, metric in base.metrics.items()
    }
    return replace(base, repeat=repeat, metrics=metrics)


def run_meta() -> dict[str, Any]:
    """run.json of the same run."""
    return {
        "format": 1,
        "name": "two engines, one model",
        "status": "done",
        "created_utc": "2026-03-01T09:30:00Z",
        "finished_utc": "2026-03-01T10:02:11Z",
        "command": ["enginebench", "run", "scenarios/two engines.yaml", "--set", "load.0.duration=60s"],
        "scenario_sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
        "scenario": {
            "name": "two engines, one model",
            "targets": [{"name": "vllm", "launch": "vllm"}, {"name": HOSTILE_NAME, "url": "http://10.0.0.7:8000/v1"}],
            "workload": {"kind": "synthetic", "input_tokens": 512, "output_tokens": 128},
            "load": [{"kind": "concurrency", "levels": list(LEVELS), "warmup": "10s", "duration": "60s"}],
            "repeats": 1,
            "seed": 7,
        },
        "hosts": [
            {
                "hostname": "bench-01",
                "cpu": "AMD EPYC 9554 64-Core Processor",
                "cores": 64,
                "kernel": "6.8.0-45-generic",
                "python": "3.12.4",
                "packages": {"enginebench": "0.1.0", "httptools": "0.6.4", "numpy": "2.1.1"},
                "boot_id": "0b1f6c5e-8a43-4f0e-9c53-3e1b8f0a7c55",
            }
        ],
        "targets": [
            {
                "name": "vllm", "engine": "vLLM", "version": "0.11.2",
                "argv": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--max-num-seqs", "32"],
                "base_url": "http://127.0.0.1:8000/v1", "model": "meta-llama/Llama-3.1-8B-Instruct",
                "endpoint": "chat", "problem": None,
                "starts": [{"ready_s": 61.25, "first_completion_s": 61.9}],
            },
            {
                "name": HOSTILE_NAME, "engine": HOSTILE_URL, "version": None, "argv": None,
                "base_url": "http://10.0.0.7:8000/v1", "model": HOSTILE_MODEL, "endpoint": "completions",
                "problem": None, "starts": [],
            },
        ],
    }  # fmt: skip
