"""The names that reports ask for are those that analysis gives."""

from __future__ import annotations

import pytest
from tests.analysis.rows import record, refused, result, steady, summary
from tests.report.test_terminal import drawn

from enginebench.analysis.checks import CHECKS
from enginebench.analysis.levels import DISTRIBUTIONS, RATES
from enginebench.analysis.stats import QUANTILES
from enginebench.model.record import OUTCOMES, Record
from enginebench.model.summary import Summary
from enginebench.report.charts import LATENCIES, PERCENTILES
from enginebench.report.exports import csv
from enginebench.report.findings import COUNT_CHECKS, MS_CHECKS
from enginebench.report.html import page
from enginebench.report.markdown import markdown
from enginebench.report.points import FAILED_OUTCOMES, all_series, value
from enginebench.report.tables import COLUMNS, cell
from enginebench.report.terminal import final_table

WINDOW = result(span_ms=(0, 10_000))
SERVED = [record(100 * i, steady(100 * i + 10, 100 * i + 900, 20), output_tokens=20) for i in range(100)]


def test_columns_and_charts_are_of_metrics_that_exist() -> None:
    for column in COLUMNS:
        if column.metric:
            known = RATES if column.stat == "value" else DISTRIBUTIONS
            assert column.metric in known
            assert column.stat in ("value", *QUANTILES)
            assert column.unit == known[column.metric] or (column.part == "" and column.unit == "mean")
    assert {metric for metric, _, _ in LATENCIES} <= DISTRIBUTIONS.keys()
    assert set(PERCENTILES) == QUANTILES.keys()


def test_checks_with_a_unit_of_their_own_and_failed_outcomes_exist() -> None:
    assert CHECKS.keys() >= COUNT_CHECKS | MS_CHECKS | {"coalesced"}
    assert {"ok", "cancelled", *FAILED_OUTCOMES} == set(OUTCOMES)


@pytest.mark.parametrize(
    "records",
    [SERVED, [*SERVED, *(refused(100 * i) for i in range(50))], [refused(100 * i) for i in range(50)], []],
    ids=["served", "half refused", "all refused", "nothing sent"],
)
def test_every_report_can_be_made_of_what_analysis_gives(records: list[Record]) -> None:
    derived: Summary = summary(records, WINDOW)
    (series,) = all_series(derived)
    ttft = value(series.points[0], "ttft", "p50").value

    text = drawn(final_table(derived, 80), 80)
    pages = [text, markdown(derived, {}), page(derived, {}, ""), csv(derived)]

    assert (ttft == 10) == bool(records and records[0] in SERVED)
    shown = cell(series.points[0], next(c for c in COLUMNS if (c.metric, c.stat) == ("ttft", "p50"))).text
    assert shown == ("10.0" if ttft else "n/a")
    assert all(shown in one for one in pages[:3])
