"""`enginebench mock`: serve like an engine, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from enginebench.batching.scheduler import SchedulerConfig
from enginebench.batching.step_time import StepTime

_DEFAULT = SchedulerConfig()
_STEP = _DEFAULT.step_time


def mock(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Keep to loopback unless you mean it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free one.")] = 8000,
    model: Annotated[str, typer.Option(help="Model name to serve under.")] = "mock-model",
    max_num_seqs: Annotated[
        int, typer.Option(help="Sequences in the running batch.")
    ] = _DEFAULT.max_num_seqs,
    max_num_batched_tokens: Annotated[
        int, typer.Option(help="Tokens computed per step.")
    ] = _DEFAULT.max_num_batched_tokens,
    base_ms: Annotated[float, typer.Option(help="Time of an empty step.")] = _STEP.base_ms,
    per_seq_us: Annotated[float, typer.Option(help="Added per sequence in the step.")] = _STEP.per_seq_us,
    per_ktoken_us: Annotated[
        float, typer.Option(help="Added per 1,000 tokens of context.")
    ] = _STEP.per_ktoken_us,
    prefill_us_per_token: Annotated[
        float, typer.Option(help="Added per prompt token in the step.")
    ] = _STEP.prefill_us_per_token,
    truth: Annotated[Path | None, typer.Option(help="Append true send times here, as JSON lines.")] = None,
    seed: Annotated[int, typer.Option(help="Which text prompts are answered with.")] = 0,
) -> None:
    """Serve like a continuous-batching engine, on plain step-time numbers.

    The defaults imitate a small model on a laptop. Chat and completions, vLLM's shapes and metrics;
    the true send time of every chunk in --truth and at GET /truth. Ctrl-C or SIGTERM stops it.
    """
    from enginebench.mock.config import MockConfig
    from enginebench.mock.server import run

    step_time = StepTime(base_ms, per_seq_us, per_ktoken_us, prefill_us_per_token)
    scheduler = SchedulerConfig(max_num_seqs, max_num_batched_tokens, step_time)
    truth_file = None if truth is None else str(truth)
    run(MockConfig(host, port, model, scheduler, truth_file, seed))
