"""The scheduler on the wall clock: real arrivals in, tokens delivered when their step ends.

Deadlines are absolute. A step that is delivered late neither shifts nor stretches the next one,
and an arrival joins the first step that starts after it, however late that step is worked off. So
the intended times are exactly those of `batching.simulate` for the recorded arrivals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from enginebench.batching.scheduler import Scheduler, SchedulerConfig, Step
from enginebench.mock.timer import DeadlineTimer

Emit = Callable[[int], None]
"""Called once for each token, with the intended time of the step's end."""


class Engine:
    def __init__(self, loop: asyncio.AbstractEventLoop, config: SchedulerConfig) -> None:
        self._scheduler = Scheduler(config)
        self._timer = DeadlineTimer(loop, self._end_step)
        self._emits: dict[int, Emit] = {}
        self._step: Step | None = None
        self._free_ns = 0
        self._n_submitted = 0
        self.prompt_tokens_total = 0
        self.generation_tokens_total = 0

    @property
    def n_waiting(self) -> int:
        return self._scheduler.n_waiting

    @property
    def n_running(self) -> int:
        return len(self._emits) - self._scheduler.n_waiting

    def submit(self, arrived_ns: int, prompt_tokens: int, output_tokens: int, emit: Emit) -> int:
        """Queue a sequence that arrived just now; returns its id."""
        seq_id = self._n_submitted
        self._n_submitted += 1
        self._emits[seq_id] = emit
        self._scheduler.add(arrived_ns, seq_id, prompt_tokens, output_tokens)
        if self._step is None:
            self._begin_step(self._free_ns)
        return seq_id

    def cancel(self, seq_id: int) -> None:
        """Free a sequence: nothing is emitted for it any more, not even by the step in progress."""
        if self._emits.pop(seq_id, None) is not None:
            self._scheduler.cancel(seq_id)

    def close(self) -> None:
        self._timer.close()

    def _begin_step(self, free_ns: int) -> None:
        self._free_ns = free_ns
        start_ns = self._scheduler.next_start_ns(free_ns)
        if start_ns is None:
            self._step = None
            return
        self._step = self._scheduler.step(start_ns)
        self._timer.arm(self._step.end_ns)

    def _end_step(self) -> None:
        step = self._step
        assert step is not None  # the timer is armed only by a step
        for seq_id in step.emitted:
            emit = self._emits.get(seq_id)
            if emit is not None:  # None: the client left during the step
                emit(step.end_ns)
        for seq_id in step.finished:
            self._emits.pop(seq_id, None)
        self.prompt_tokens_total += step.prefill_tokens
        self.generation_tokens_total += len(step.emitted)
        self._begin_step(step.end_ns)
