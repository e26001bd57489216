"""The main job on real input: a whole run against llama.cpp, held against the engine's own counter."""

import subprocess
import sys
from pathlib import Path

import pytest

import enginebench

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> enginebench.Run:
    folder: Path = tmp_path_factory.mktemp("llamacpp") / "run"
    words = [
        "run",
        "llamacpp-cpu",
        "--out",
        str(folder),
        "--set",
        "load.0.warmup=1s",
        "--set",
        "load.0.duration=3s",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "enginebench", *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return enginebench.load(folder)


def test_both_endpoints_are_swept_and_nothing_fails(run: enginebench.Run) -> None:
    frame = run.frame()
    assert set(frame.endpoint) == {"chat", "completions"}
    assert set(frame.level) == {1.0, 4.0, 16.0}
    assert set(frame.outcome) == {"ok"}
    assert all(cell.finished for cell in run.cells)


def test_our_tokens_over_all_phases_are_what_the_engine_counted(run: enginebench.Run) -> None:
    frame = run.frame()
    for result in run.cells:
        cell = result.cell
        rows = frame[(frame.target == cell.target) & (frame.level == cell.level)]
        assert rows.output_tokens.sum() == result.engine_counters["generation_tokens"], cell
        assert {"warmup", "measure"} == set(rows.phase)


def test_every_output_has_the_asked_length_and_every_chunk_a_kernel_stamp(run: enginebench.Run) -> None:
    frame = run.frame()
    assert (frame.output_tokens == frame.asked_output_tokens).all()
    assert (frame.stamp_source == "socket").all()
    assert (frame.engine_start == 0).all()


def test_no_prompt_was_served_from_the_cache(run: enginebench.Run) -> None:
    cached = run.frame().cached_tokens.dropna()
    assert (cached == 0).all()


def test_the_engine_is_named_with_its_version_and_how_long_it_took_to_start(run: enginebench.Run) -> None:
    for target in run.meta["targets"]:
        assert target["version"]
        assert target["starts"][0]["ready_s"] > 0
        assert target["starts"][0]["first_token_s"] > 0
