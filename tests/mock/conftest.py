from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from enginebench.mock import MockConfig, MockServer, SchedulerConfig, StepTime, running

FAST = StepTime(base_ms=0.5, per_seq_us=0, per_ktoken_us=0, prefill_us_per_token=0)


@pytest.fixture(scope="session")
def server() -> Iterator[MockServer]:
    """A quick engine that all tests share: they must not count on being alone."""
    with running(MockConfig(model="tiny", scheduler=SchedulerConfig(step_time=FAST))) as server:
        yield server


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.root_url, trust_env=False, timeout=10) as client:
        yield client
