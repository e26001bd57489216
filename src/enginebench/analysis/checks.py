"""The validity gate: a closed list of questions asked of every level.

A check answers pass, warn (read the number with this in mind) or fail (the number does not say what
it seems to say), with its value and, unless it passes, what to do. The advice of a check is one
sentence for all levels ("this share of ..."), so that a report can say it once. A check that has nothing to
judge, such as cache hits where the server reports none, is left out of the answer: it neither
passes nor fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from enginebench.analysis import client_checks, work_checks
from enginebench.analysis.evidence import Evidence, Finding

Check = Callable[[Evidence], Finding | None]

CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        work_checks.error_rate,
        work_checks.unfinished,
        work_checks.few_samples,
        client_checks.impossible_times,
        client_checks.clock_step,
        client_checks.no_stamps,
        client_checks.client_delay,
        client_checks.coalesced,
        client_checks.client_cpu,
        client_checks.sampler_cpu,
        client_checks.shared_cores,
        client_checks.send_lag,
        client_checks.occupancy,
        work_checks.token_source,
        work_checks.engine_tokens,
        work_checks.output_length,
        work_checks.fewer_tokens_than_chunks,
        work_checks.prompt_length,
        work_checks.prefix_cache,
        work_checks.hidden_reasoning,
        work_checks.buffered_stream,
    )
}


def judge(evidence: Evidence) -> tuple[dict[str, Any], ...]:
    """All checks that apply, in the order of the registry: {name, verdict, value, advice}."""
    found = ((name, check(evidence)) for name, check in CHECKS.items())
    return tuple(
        {"name": name, "verdict": f.verdict, "value": f.value, "advice": f.advice} for name, f in found if f
    )
