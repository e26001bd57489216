"""`GET /metrics` in the Prometheus text format, under vLLM's names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    running: int
    waiting: int
    prompt_tokens: int
    generation_tokens: int
    success: Mapping[str, int]
    """Finished requests by finish reason."""


def exposition(model: str, counts: Counts) -> bytes:
    name = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    labels = f'engine="0",model_name="{name}"'
    families = [
        ("num_requests_running", "gauge", "Requests in the running batch.", {labels: counts.running}),
        ("num_requests_waiting", "gauge", "Requests waiting to be admitted.", {labels: counts.waiting}),
        ("prompt_tokens_total", "counter", "Prompt tokens computed.", {labels: counts.prompt_tokens}),
        ("generation_tokens_total", "counter", "Tokens generated.", {labels: counts.generation_tokens}),
        (
            "request_success_total",
            "counter",
            "Requests that ended, by finish reason.",
            {f'engine="0",finished_reason="{r}",model_name="{name}"': n for r, n in counts.success.items()},
        ),
    ]
    lines = []
    for family, kind, help_text, samples in families:
        lines += [f"# HELP vllm:{family} {help_text}", f"# TYPE vllm:{family} {kind}"]
        lines += [f"vllm:{family}{{{labelled}}} {float(value)}" for labelled, value in samples.items()]
    return ("\n".join(lines) + "\n").encode()
