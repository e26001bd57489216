from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from enginebench.report.live import LevelProgress, live_view, plain_line

SECOND_NS = 1_000_000_000
NOW_NS = 500 * SECOND_NS

RUNNING = LevelProgress(
    target="vllm",
    load="concurrency",
    level=64,
    repeat=0,
    n_cells_done=3,
    n_cells=14,
    phase="measure",
    elapsed_ns=12 * SECOND_NS,
    planned_ns=70 * SECOND_NS,
    planned_requests=None,
    in_flight=64,
    chunks=61_234,
    chunks_per_s=5_120.4,
    ok=1_204,
)


def drawn(*rows: LevelProgress, now_ns: int = NOW_NS, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(live_view(rows, now_ns))
    return out.getvalue()


def test_the_running_level_shows_what_a_person_waits_for() -> None:
    text = drawn(RUNNING)

    assert "3 of 14 cells done" in text
    row = next(line for line in text.splitlines() if line.startswith("vllm"))
    assert row.split() == ["vllm", "64", "measure", "12/70", "s", "64", "5,120", "1,204", "0"]


def test_a_level_by_count_shows_how_many_are_wanted() -> None:
    by_count = replace(RUNNING, planned_ns=None, planned_requests=2_000, chunks_per_s=None)

    row = next(line for line in drawn(by_count).splitlines() if line.startswith("vllm"))

    assert row.split() == ["vllm", "64", "measure", "12", "s", "64", "n/a", "1,204/2,000", "0"]


def test_failures_are_told_by_outcome() -> None:
    text = drawn(replace(RUNNING, failed={"timeout": 3, "error": 1, "empty": 0}))

    assert "vllm 64: 3 timeout, 1 error" in text


def test_a_worker_that_falls_silent_is_named_and_its_clock_goes_on() -> None:
    silent = replace(RUNNING, updated_ns=NOW_NS - 10 * SECOND_NS)
    fresh = replace(RUNNING, updated_ns=NOW_NS - SECOND_NS)

    assert "vllm: nothing from the load worker for 10 s" in drawn(silent)
    assert "22/70 s" in drawn(silent)
    assert "nothing from" not in drawn(fresh)


def test_before_the_first_report_there_is_an_empty_table() -> None:
    assert "chunks/s" in drawn()


@pytest.mark.parametrize("width", [72, 80, 120])
def test_a_long_hostile_name_is_cut_rather_than_the_numbers(width: int) -> None:
    text = drawn(replace(RUNNING, target="\x1b[31m[red]" + "x" * 300, chunks_per_s=123_456.0), width=width)

    assert "\x1b" not in text
    assert "[red]" in text
    assert "123,456" in text
    assert "1,204" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_log_gets_one_line_at_the_end_of_a_level() -> None:
    done = replace(
        RUNNING, n_cells_done=4, phase="done", elapsed_ns=70_200_000_000, failed={"timeout": 3, "error": 0}
    )

    assert plain_line(done) == (
        "[4/14] vllm, concurrency 64, repeat 0: done after 70.2 s, "
        "1,204 ok, 3 failed (3 timeout), 61,234 chunks"
    )
    assert "\n" not in plain_line(replace(done, target="two\nlines\x1b[0m"))
    assert "0 failed," in plain_line(replace(done, failed={}))
