from __future__ import annotations

import csv as csv_format
import io
from dataclasses import replace

from tests.fakes.summaries import all_failed, level, repeated, run_summary

from enginebench.report.exports import COLUMNS, csv


def rows(text: str) -> list[dict[str, str]]:
    return list(csv_format.DictReader(io.StringIO(text)))


def test_there_is_one_row_for_every_statistic_of_every_repeat() -> None:
    summary = repeated(run_summary())
    levels = [lv for target in summary.targets for lv in target.levels]
    n_stats = sum(len(metric.stats) for lv in levels for metric in lv.metrics.values())
    n_counts = sum(len(lv.counts) for lv in levels)

    found = rows(csv(summary))

    assert len(found) == n_stats + n_counts
    assert set(found[0]) == set(COLUMNS)


def test_numbers_keep_all_their_digits() -> None:
    summary = run_summary()
    for row in rows(csv(summary)):
        target = next(t for t in summary.targets if row["engine"] in (t.engine, f"'{t.engine}"))
        lv = next(lv for lv in target.levels if lv.level == float(row["level"]))
        if row["metric"] == "requests":
            assert int(row["value"]) == lv.counts[row["stat"]]
            continue
        expected = lv.metrics[row["metric"]].stats[row["stat"]].value
        assert (float(row["value"]) if row["value"] else None) == expected
        assert row["unit"] == lv.metrics[row["metric"]].unit


def test_a_missing_number_is_an_empty_field_with_its_reason() -> None:
    target = replace(run_summary().targets[0], levels=(all_failed(level(8, 10, 20)),))

    found = [r for r in rows(csv(replace(run_summary(), targets=(target,)))) if r["metric"] != "requests"]

    assert {row["value"] for row in found} == {""}
    assert {row["note"] for row in found} == {"no request ended well"}


def test_no_name_becomes_a_formula_or_a_new_line() -> None:
    target = replace(run_summary().targets[0], name="=HYPERLINK(1)", model="@x\n,y\x1b[0m", engine="-1+1")

    found = rows(csv(replace(run_summary(), targets=(target,))))

    assert {(r["target"], r["model"], r["engine"]) for r in found} == {("'=HYPERLINK(1)", "'@x ,y", "'-1+1")}
