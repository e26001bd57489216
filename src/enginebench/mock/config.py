"""What a mock engine is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from enginebench.batching.scheduler import SchedulerConfig
from enginebench.errors import UserError

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
MAX_MODEL_LEN = 131_072
"""Prompt and output tokens together: bounds what one request can make the server produce."""


@dataclass(frozen=True, slots=True)
class MockConfig:
    """`MockConfig()` serves the laptop imitation on a free loopback port."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free port."""
    model: str = "mock-model"
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    truth_file: str | None = None
    """JSON lines are appended here as requests end (mock/truth.py)."""
    seed: int = 0
    """Which text a prompt is answered with. Times do not depend on it."""

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise UserError(f"port must be between 0 and 65535, not {self.port}")
        if not self.model:
            raise UserError("model must not be empty")
