from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.engines_unit import fake_engine
from tests.engines_unit.waiting import Notes

from enginebench.engines.process import EngineSpec
from enginebench.units import NS_PER_S

SpecOf = Callable[..., EngineSpec]


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    pipe = Notes(tmp_path / "notes")
    yield pipe
    pipe.close()


@pytest.fixture
def spec_of(tmp_path: Path) -> SpecOf:
    """The spec of a fake engine in the given mode."""

    def make(mode: str, notes: Notes | None = None, **fields: object) -> EngineSpec:
        argv = [sys.executable, "-S", fake_engine.__file__, "{port}", mode]
        fields = {"start_timeout_ns": 30 * NS_PER_S, "grace_s": 5.0, **fields}
        return EngineSpec(
            name="fake",
            argv=argv + ([str(notes.path)] if notes else []),
            log_path=tmp_path / "fake.txt",
            model="fake",
            **fields,  # type: ignore[arg-type]
        )

    return make


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test may leave a process behind, whatever it did to an engine."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert left == []
