"""Which GPUs an engine gets. The cards are made up, but for one test through the real binding."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from enginebench.engines.gpus import Card, pinned
from enginebench.errors import TargetError

GIB = 1 << 30
FREE = Card(0, "GPU-aa11", 80 * GIB, 79 * GIB)
BUSY = Card(1, "GPU-aa22", 80 * GIB, 10 * GIB, (os.getpid(),))
SOURCE = Path(__file__).parents[1] / "telemetry" / "fake_nvml.c"
ASK = (
    "from enginebench.engines.gpus import cards, pinned; print(pinned('e', [1, 0]), cards()[0], sep=chr(10))"
)


@pytest.mark.parametrize(
    ("gpus", "uuids"),
    [
        ([0], ["GPU-aa11"]),
        (["0"], ["GPU-aa11"]),
        (["GPU-aa11"], ["GPU-aa11"]),
        (["GPU-aa1"], ["GPU-aa11"]),
        (["MIG-5c8f"], ["MIG-5c8f"]),
        ([], []),
        (None, None),
    ],
)
def test_a_gpu_is_known_by_its_uuid(gpus: list[int | str] | None, uuids: list[str] | None) -> None:
    assert pinned("e", gpus, look=lambda: [FREE, BUSY]) == uuids


def test_gpus_keep_the_order_that_was_asked_for() -> None:
    second = Card(1, "GPU-bb", 80 * GIB, 80 * GIB)
    assert pinned("e", [1, 0], look=lambda: [FREE, second]) == ["GPU-bb", "GPU-aa11"]


def test_without_nvml_what_the_target_says_is_passed_on() -> None:
    assert pinned("e", [0, 7], look=lambda: None) == [0, 7]


@pytest.mark.parametrize(
    ("gpu", "problem"),
    [(7, "no GPU 7 here"), ("GPU-zz", "no GPU GPU-zz here"), ("GPU-aa", "more than one GPU GPU-aa here")],
)
def test_a_gpu_that_is_not_here_is_told_with_those_that_are(gpu: int | str, problem: str) -> None:
    with pytest.raises(TargetError, match=problem) as caught:
        pinned("e", [gpu], look=lambda: [FREE, BUSY])
    assert str(caught.value).endswith("there are: 0 (GPU-aa11), 1 (GPU-aa22)")


def test_a_gpu_in_use_is_refused_with_its_holder() -> None:
    with pytest.raises(TargetError) as caught:
        pinned("e", [0, 1], look=lambda: [FREE, BUSY], patience_s=0)
    message = str(caught.value)
    assert message.startswith("e cannot start: 70.0 of 80.0 GiB of GPU 1 (GPU-aa22) are in use by process ")
    assert f"process {os.getpid()} (" in message
    assert "and 90% must be free" in message


def test_a_gpu_in_use_is_no_matter_to_who_did_not_ask_for_it() -> None:
    assert pinned("e", [0], look=lambda: [FREE, BUSY], patience_s=0) == ["GPU-aa11"]


@pytest.mark.parametrize(("fraction", "is_enough"), [(0.125, True), (0.126, False)])
def test_only_the_share_that_the_engine_takes_must_be_free(fraction: float, is_enough: bool) -> None:
    if is_enough:
        assert pinned("e", [1], fraction, lambda: [FREE, BUSY], patience_s=0) == ["GPU-aa22"]
    else:
        with pytest.raises(TargetError, match="13% must be free"):
            pinned("e", [1], fraction, lambda: [FREE, BUSY], patience_s=0)


def test_memory_that_is_given_back_a_moment_later_is_waited_for() -> None:
    looks: list[Sequence[Card]] = [[BUSY], [BUSY], [Card(1, "GPU-aa22", 80 * GIB, 80 * GIB)]]
    assert pinned("e", [1], look=lambda: list(looks.pop(0)), patience_s=30) == ["GPU-aa22"]
    assert looks == []


def test_the_real_binding_tells_uuid_and_memory(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "this test needs a C compiler: install gcc"
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True, timeout=60)
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, timeout=60)
    uuids, card = done.stdout.splitlines()
    assert uuids == "['GPU-old', 'GPU-new']"
    # The old driver's library does not say who computes: nobody is named, nothing fails.
    assert card == "Card(index=0, uuid='GPU-new', total_bytes=85520809984, free_bytes=84447068160, pids=())"
