"""Continuous batching as a state machine: arrivals in, steps out. It knows no clock.

The same machine drives the live mock server and the virtual-time simulation, so the expected time
of every token is a pure function of the arrivals. What it does not model yet: KV capacity and
preemption, prefix caching, several tokens per step, a queue limit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from enginebench.batching.step_time import StepTime
from enginebench.errors import UserError


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    max_num_seqs: int = 64
    """Sequences in the running batch; the rest wait in order of arrival."""
    max_num_batched_tokens: int = 2048
    """Tokens computed in one step: one for each decoding sequence, the rest for prompts."""
    step_time: StepTime = field(default_factory=StepTime)

    def __post_init__(self) -> None:
        if self.max_num_seqs < 1:
            raise UserError(f"max_num_seqs must be at least 1, not {self.max_num_seqs}")
        if self.max_num_batched_tokens < self.max_num_seqs:
            # vLLM refuses this too: later sequences of a full batch would never decode.
            raise UserError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must be at least "
                f"max_num_seqs ({self.max_num_seqs}): every running sequence needs one token per step"
            )


@dataclass(frozen=True, slots=True)
class Step:
    """One pass of the engine. Its tokens all appear at `end_ns`."""

    start_ns: int
    end_ns: int
    emitted: tuple[int, ...]
    """Sequences that emit a token, in order of admission; one entry per token."""
    finished: tuple[int, ...]
    """Those of `emitted` for which it was the last token."""
    n_seqs: int
    prefill_tokens: int
    context_tokens: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(slots=True)
class _Sequence:
    seq_id: int
    arrived_ns: int
    n_prompt: int
    n_pending: int
    """Tokens known but not computed: the rest of the prompt, then one per step."""
    n_left: int
    """Tokens still to be emitted."""
    n_computed: int = 0
    """Tokens whose keys and values are in the cache."""


class Scheduler:
    """First come, first served, with chunked prefill mixed into decode steps.

    As in vLLM's scheduler there are no prefill and decode phases: every sequence has tokens that
    are known and tokens that are computed, and each step lets the computed ones catch up. Running
    sequences are served first, in order of admission; what is left of the token budget admits
    waiting ones, the last of which may get only a part of its prompt. A sequence emits a token at
    the end of each step in which it caught up.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self._waiting: deque[_Sequence] = deque()
        self._running: list[_Sequence] = []

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    @property
    def n_running(self) -> int:
        """Sequences that the next step will continue; those a step finished have left."""
        return len(self._running)

    def add(self, arrived_ns: int, seq_id: int, prompt_tokens: int, output_tokens: int) -> None:
        """Queue a sequence. Ids must be new and arrivals must not go back in time.

        Raises ValueError for an empty prompt, an empty output or an arrival before the last one.
        """
        if prompt_tokens < 1 or output_tokens < 1:
            raise ValueError(
                f"a sequence needs at least one token each way: {prompt_tokens}, {output_tokens}"
            )
        if self._waiting and arrived_ns < self._waiting[-1].arrived_ns:
            raise ValueError(f"sequence {seq_id} arrived before the one queued ahead of it")
        self._waiting.append(_Sequence(seq_id, arrived_ns, prompt_tokens, prompt_tokens, output_tokens))

    def cancel(self, seq_id: int) -> None:
        """Drop a sequence, wherever it is; unknown and finished ones are ignored.

        A step already returned keeps its duration: the engine cannot take back work in progress.
        """
        self._waiting = deque(seq for seq in self._waiting if seq.seq_id != seq_id)
        self._running = [seq for seq in self._running if seq.seq_id != seq_id]

    def next_start_ns(self, free_ns: int) -> int | None:
        """When the next step begins if the engine is free from `free_ns`; None when there is no work."""
        if self._running:
            return free_ns
        if self._waiting:
            return max(free_ns, self._waiting[0].arrived_ns)
        return None

    def step(self, start_ns: int) -> Step:
        """Run one step with what has arrived by `start_ns`, and move on to its end.

        Raises ValueError when there is nothing to run.
        """
        scheduled = self._schedule(start_ns)
        if not scheduled:
            raise ValueError(f"no sequence to run at {start_ns}")
        return self._execute(start_ns, scheduled)

    def _schedule(self, start_ns: int) -> list[tuple[_Sequence, int]]:
        """Who takes part, with how many tokens."""
        budget = self._config.max_num_batched_tokens
        scheduled = []
        for seq in self._running:
            # Never 0: a whole batch of single tokens fits (SchedulerConfig), and only the last
            # sequence admitted can be in the middle of its prompt.
            n_tokens = min(seq.n_pending, budget)
            scheduled.append((seq, n_tokens))
            budget -= n_tokens
        while budget and self._waiting and self._waiting[0].arrived_ns <= start_ns:
            if len(self._running) == self._config.max_num_seqs:
                break
            seq = self._waiting.popleft()
            self._running.append(seq)
            n_tokens = min(seq.n_pending, budget)
            scheduled.append((seq, n_tokens))
            budget -= n_tokens
        return scheduled

    def _execute(self, start_ns: int, scheduled: list[tuple[_Sequence, int]]) -> Step:
        context_tokens = prefill_tokens = 0
        emitted: list[int] = []
        finished: list[int] = []
        for seq, n_tokens in scheduled:
            context_tokens += seq.n_computed
            if seq.n_computed < seq.n_prompt:
                prefill_tokens += n_tokens
            seq.n_computed += n_tokens
            if n_tokens < seq.n_pending:
                seq.n_pending -= n_tokens
                continue
            emitted.append(seq.seq_id)
            seq.n_pending = 1
            seq.n_left -= 1
            if not seq.n_left:
                finished.append(seq.seq_id)
        if finished:
            self._running = [seq for seq in self._running if seq.n_left]
        duration_ns = self._config.step_time.duration_ns(len(scheduled), context_tokens, prefill_tokens)
        return Step(
            start_ns=start_ns,
            end_ns=start_ns + duration_ns,
            emitted=tuple(emitted),
            finished=tuple(finished),
            n_seqs=len(scheduled),
            prefill_tokens=prefill_tokens,
            context_tokens=context_tokens,
        )
