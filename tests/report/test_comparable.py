"""Unequal work stands at the top of every report; equal work takes no room in the terminal."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from tests.fakes.summaries import HOSTILE_NAME, run_meta, run_summary

from enginebench.model.summary import Summary
from enginebench.report.comparable import parity, unequal_work
from enginebench.report.html import page
from enginebench.report.markdown import markdown
from enginebench.report.terminal import final_table


def judged(*checks: tuple[str, str, str]) -> Summary:
    found = tuple({"name": n, "verdict": v, "detail": d} for n, v, d in checks)
    return replace(run_summary(), parity=found)


UNEQUAL = judged(
    ("same_prompts", "pass", "equal on all 9 requests in common"),
    ("output_lengths", "fail", f"{HOSTILE_NAME}: 50 % of a's\x1b[31m"),
    ("agreement", "warn", "3 of 20 equal"),
)
SENTENCE = "Unequal work (output lengths): do not compare these targets."


def on_terminal(summary: Summary) -> str:
    console = Console(width=300, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(final_table(summary, 300))
    return capture.get()


def test_unequal_work_is_said_in_one_sentence_with_its_reason() -> None:
    assert unequal_work(UNEQUAL) == f"{SENTENCE} output lengths: {HOSTILE_NAME}: 50 % of a's."
    assert unequal_work(judged(("sampling", "warn", "x"))) is None
    assert unequal_work(run_summary()) is None


def test_checks_have_titles_a_reader_knows_and_foreign_ones_stay() -> None:
    found = parity(judged(("agreement", "pass", "x"), ("new_check", "warn", "y")))

    assert [one.title for one in found] == ["output agreement", "new_check"]


def test_the_terminal_begins_with_unequal_work_and_ends_with_warnings() -> None:
    lines = on_terminal(UNEQUAL).splitlines()

    assert lines[0].startswith(SENTENCE)
    assert any(line.startswith("warn: output agreement. 3 of 20 equal") for line in lines)
    assert "\x1b[31m" not in "".join(lines)


def test_markdown_has_it_under_the_title_and_all_checks_below() -> None:
    text = markdown(UNEQUAL, run_meta())

    assert text.splitlines()[2].startswith(f"**{SENTENCE}")
    assert "- pass: same prompts. equal on all 9 requests in common" in text
    assert HOSTILE_NAME not in text


def test_the_page_has_it_above_the_answer_and_a_mark_for_every_check() -> None:
    text = page(UNEQUAL, run_meta(), "")

    assert text.index(f'id="unequal">{SENTENCE}') < text.index('id="parity"') < text.index('id="answer"')
    assert text.count('<li class="pass"') == text.count('<li class="fail"') == 1
    assert HOSTILE_NAME not in text


def test_one_target_has_no_word_on_comparing() -> None:
    for text in (on_terminal(run_summary()), markdown(run_summary(), {}), page(run_summary(), {}, "")):
        assert "nequal work" not in text
        assert "Same work" not in text


def test_unequal_work_is_not_set_side_by_side() -> None:
    for text in (on_terminal(UNEQUAL), markdown(UNEQUAL, {}), page(UNEQUAL, {}, "")):
        assert "At their best levels" not in text
    assert "At their best levels" in on_terminal(run_summary())
