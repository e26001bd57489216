from __future__ import annotations

from dataclasses import replace

from tests.fakes.summaries import HOSTILE_NAME, repeated, run_meta, run_summary
from tests.report.golden import assert_golden

from enginebench.report.markdown import markdown


def test_the_whole_report() -> None:
    assert_golden("report.md", markdown(run_summary(), run_meta()))


def test_no_html_and_no_control_character_of_a_foreign_name_comes_through() -> None:
    target = replace(run_summary().targets[0], model="a | b <img src=x onerror=y> \x1b[0m\n# head")

    text = markdown(replace(run_summary(), targets=(target, run_summary().targets[1])), run_meta())

    assert HOSTILE_NAME not in text
    assert "<img" not in text
    assert "\n# head" not in text
    assert not any(ord(c) < 32 and c != "\n" for c in text)


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    text = markdown(run_summary(), run_meta())

    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 * (2 + 7)
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


def test_a_run_that_ended_early_says_so_before_its_numbers() -> None:
    text = markdown(replace(run_summary(), status="interrupted", notes=("unequal work",)), run_meta())

    assert text.index("This run is not complete: it was interrupted") < text.index("## Results")
    assert text.index("**unequal work**") < text.index("## Results")


def test_metadata_that_was_not_kept_is_left_out() -> None:
    text = markdown(repeated(run_summary()), {})

    assert "- host: bench-01" in text
    assert "How to reproduce" not in text
    assert "- median of 3 repeats" in text
    assert "None" not in text.replace("None of", "")


def test_a_run_whose_checks_all_passed_says_how_many() -> None:
    summary = replace(run_summary(), targets=run_summary().targets[:1])

    assert "All 49 checks passed." in markdown(summary, run_meta())
    unchecked = replace(
        summary.targets[0], levels=tuple(replace(lv, checks=()) for lv in summary.targets[0].levels)
    )
    assert "No check was made." in markdown(replace(summary, targets=(unchecked,)), run_meta())
