"""The scheduler in virtual time: the exact token times of any set of arrivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from enginebench.batching.scheduler import Scheduler, SchedulerConfig, Step


@dataclass(frozen=True, slots=True)
class Arrival:
    at_ns: int
    prompt_tokens: int
    output_tokens: int


def steps(arrivals: Sequence[Arrival], config: SchedulerConfig) -> Iterator[Step]:
    """Every step of an engine that gets these arrivals; sequence ids are indices into `arrivals`.

    The engine starts idle. Arrivals may come in any order; equal times keep the order given.
    """
    scheduler = Scheduler(config)
    for index in sorted(range(len(arrivals)), key=lambda i: arrivals[i].at_ns):
        arrival = arrivals[index]
        scheduler.add(arrival.at_ns, index, arrival.prompt_tokens, arrival.output_tokens)
    start_ns = scheduler.next_start_ns(min((a.at_ns for a in arrivals), default=0))
    while start_ns is not None:
        step = scheduler.step(start_ns)
        yield step
        start_ns = scheduler.next_start_ns(step.end_ns)


def token_times(arrivals: Sequence[Arrival], config: SchedulerConfig) -> list[NDArray[np.int64]]:
    """For each arrival, when each of its tokens is emitted: int64 ns, shape (output_tokens,)."""
    times: list[list[int]] = [[] for _ in arrivals]
    for step in steps(arrivals, config):
        for index in step.emitted:
            times[index].append(step.end_ns)
    return [np.array(one, dtype=np.int64) for one in times]
