from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType
from tests.fakes.summaries import LEVELS, all_failed, level, repeated, run_summary
from tests.report.golden import assert_golden

from enginebench.model.summary import Summary, TargetSummary
from enginebench.report.terminal import final_table


def drawn(renderable: RenderableType, width: int, *, colours: bool = False) -> str:
    out = io.StringIO()
    system = "standard" if colours else None
    Console(file=out, width=width, force_terminal=colours, color_system=system, legacy_windows=False).print(
        renderable
    )
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("width", [80, 140])
def test_the_final_table_at_usual_widths(width: int) -> None:
    assert_golden(f"report-{width}.txt", drawn(final_table(run_summary(), width), width))


@pytest.mark.parametrize("width", [*range(64, 220, 13), 80])
@pytest.mark.parametrize("n_repeats", [1, 3])
def test_no_number_is_cut_at_any_width(width: int, n_repeats: int) -> None:
    summary = repeated(run_summary(), (1.0,) * n_repeats)

    text = drawn(final_table(summary, width), width)

    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("p50 ms") >= 4  # TTFT and ICL of both targets stand at every width


def test_a_wider_terminal_shows_more_columns() -> None:
    n_columns = [
        drawn(final_table(run_summary(), width), width).split("conc.")[1].splitlines()[0].count("  ")
        for width in (64, 80, 100, 140, 240)
    ]

    assert n_columns == sorted(set(n_columns))


def test_numbers_of_five_digits_still_fit_80_columns() -> None:
    target = run_summary().targets[0]
    busy = tuple(
        replace(one, level=c, counts={"ok": 54_321, "timeout": 12_345, "total": 66_666})
        for one, c in zip(target.levels, (256, 512, 1024, 2048, 4096, 8192, 16384), strict=True)
    )
    summary = replace(run_summary(), targets=(replace(target, levels=busy),))

    text = drawn(final_table(summary, 80), 80)

    assert "16,384" in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_foreign_text_neither_steers_the_terminal_nor_is_taken_for_markup() -> None:
    target = replace(run_summary().targets[0], name="[bold red]x[/]", engine="\x1b[2Jgone :smile:")
    summary = replace(run_summary(), targets=(target,), notes=("[link=http://evil]note[/link]\x1b]0;t\x07",))

    plain = drawn(final_table(summary, 100), 100)
    coloured = drawn(final_table(summary, 100), 100, colours=True)

    assert "[bold red]x[/]  gone :smile:, " in plain
    assert "[link=http://evil]note[/link]" in plain
    assert "\x1b" not in plain
    assert "\x1b[2J" not in coloured
    assert "\x1b]" not in coloured


def test_a_run_in_which_all_failed_shows_counts_and_no_number() -> None:
    levels = tuple(all_failed(level(c, 10, 20)) for c in LEVELS)
    target = TargetSummary("vllm", "vLLM", "llama", "chat", None, levels)

    text = drawn(final_table(replace(run_summary(), targets=(target,)), 80), 80)

    assert "fail: error rate 100 % at every level." in text
    assert "failed: http_429 46 at 1, 90 at 2" in text
    assert "vllm has no throughput to give" in text
    rows = [line.split() for line in text.splitlines() if line.strip().startswith(("1 ", "64 "))]
    assert {word for row in rows for word in row[3:]} == {"n/a"}


def test_a_level_that_was_broken_off_is_marked_and_explained() -> None:
    target = run_summary().targets[0]
    levels = (*target.levels[:-1], replace(target.levels[-1], complete=False))

    text = drawn(final_table(replace(run_summary(), targets=(replace(target, levels=levels),)), 80), 80)

    assert "  64*" in text
    assert "* broken off before its end" in text


def test_repeats_are_named_under_the_table() -> None:
    assert "median of 3 repeats\n" in drawn(final_table(repeated(run_summary()), 80), 80)


@pytest.mark.parametrize("problem", [None, "", "no answer on port 8000"])
def test_a_run_without_a_level_says_so(problem: str | None) -> None:
    target = TargetSummary("vllm", "vLLM", None, "chat", problem, ())
    summary = Summary(1, "enginebench", "x", "failed", "", "host", (target,), ())

    text = drawn(final_table(summary, 80), 80)

    assert ("no answer on port 8000" if problem else "vllm: no level was measured.") in text
