"""Every pattern of the table, on a line as the program in question writes it (log_lines.txt)."""

from __future__ import annotations

from pathlib import Path

import pytest

from enginebench.engines.diagnosis import TROUBLES, diagnosed

LINES = [
    tuple(line.split(": ", 1))
    for line in Path(__file__).with_name("log_lines.txt").read_text(encoding="utf-8").splitlines()
]
"""(id of a trouble, line)"""


@pytest.mark.parametrize(("trouble", "line"), LINES)
def test_a_line_as_it_stands_in_a_log_is_recognised(trouble: str, line: str) -> None:
    found = diagnosed(f"INFO loading\n(EngineCore pid=311) {line}\nTraceback (most recent call last):\n")
    assert found is not None
    assert found.id == trouble
    assert str(found) == f"{found.what}; {found.advice}"


def test_every_pattern_of_the_table_has_a_line() -> None:
    for trouble in TROUBLES:
        lines = [line for name, line in LINES if name == trouble.id]
        for pattern in trouble.patterns:
            assert any(pattern.search(line) for line in lines), (trouble.id, pattern.pattern)


@pytest.mark.parametrize(
    "line",
    [
        "INFO 12-01 16:50:01 [api_server.py:1346] vLLM API server version 0.32.0",
        "Unable to find image 'vllm/vllm-openai:v0.33.0' locally",
        "v0.33.0: Pulling from vllm/vllm-openai",
        "INFO: Available KV cache memory: 60.21 GiB",
        "GPU KV cache size: 412,512 tokens; gpu_memory_utilization=0.9",
        "load_tensors: offloaded 33/33 layers to GPU",
        "Loading tokenizer from /models/m/tokenizer.json",
        "W1201 torch.distributed: memory allocator expandable_segments is off",
        'INFO:     127.0.0.1:53412 - "POST /v1/completions HTTP/1.1" 404 Not Found',
        "",
    ],
)
def test_what_an_engine_says_on_a_good_day_is_no_trouble(line: str) -> None:
    assert diagnosed(line) is None


def test_the_special_cause_wins_over_the_general_one_that_it_leads_to() -> None:
    log = (
        "RuntimeError: The NVIDIA driver on your system is too old\nRuntimeError: No CUDA GPUs are available"
    )
    found = diagnosed(log)
    assert found is not None
    assert found.id == "driver-too-old"


@pytest.mark.parametrize(
    ("status", "trouble"),
    [(-9, "killed"), (137, "killed"), (-4, "illegal-instruction"), (132, "illegal-instruction")],
)
def test_a_death_without_words_is_told_by_its_signal(status: int, trouble: str) -> None:
    found = diagnosed("loading weights", status)
    assert found is not None
    assert found.id == trouble


@pytest.mark.parametrize("status", [0, 1, -15, -11, None])
def test_other_ends_without_words_are_not_guessed_at(status: int | None) -> None:
    assert diagnosed("loading weights", status) is None


def test_words_win_over_the_signal() -> None:
    found = diagnosed("torch.OutOfMemoryError: CUDA out of memory.", -9)
    assert found is not None
    assert found.id == "gpu-memory"
