"""How long one engine step takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from enginebench.errors import UserError


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step time that is linear in the work of the step; the defaults imitate a small model on a laptop.

    The terms are the usual first-order ones: weights read once per step (base), a cost per
    sequence (sampling, scheduling), the KV cache read once per step (per context token), and
    compute that grows with the prompt tokens processed.
    """

    base_ms: float = 8.0
    per_seq_us: float = 50.0
    per_ktoken_us: float = 10.0
    """Per 1,000 tokens of context that the step's sequences already hold."""
    prefill_us_per_token: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value >= 0):
                raise UserError(f"{field.name} must be a number of at least 0, not {value}")

    def duration_ns(self, n_seqs: int, context_tokens: int, prefill_tokens: int) -> int:
        """One rounding per step, so that equal work takes equal time however it is priced.

        `per_ktoken_us * tokens / 1000` microseconds are `per_ktoken_us * tokens` nanoseconds.
        """
        return round(
            self.base_ms * 1e6
            + self.per_seq_us * 1e3 * n_seqs
            + self.per_ktoken_us * context_tokens
            + self.prefill_us_per_token * 1e3 * prefill_tokens
        )
