"""Summaries for other programs."""

from __future__ import annotations

import csv as csv_format
import io
from collections.abc import Iterator

from enginebench.model.summary import Level, Summary
from enginebench.report.text import clean

COLUMNS = (
    "target", "engine", "model", "endpoint", "load", "level", "repeat", "complete",
    "metric", "stat", "value", "low", "high", "method", "unit", "n", "note",
)  # fmt: skip


def csv(summary: Summary) -> str:
    """Long form: one row for each target, level, repeat, metric and statistic, all digits kept.

    A missing number is an empty field. Counts of requests are rows too: metric `requests`, the
    outcome as statistic. Names that a spreadsheet would take for a formula get a leading
    apostrophe.
    """
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for target in summary.targets:
        about = [_inert(text or "") for text in (target.name, target.engine, target.model, target.endpoint)]
        for level in target.levels:
            place = [_inert(level.load), f"{level.level:g}", level.repeat, str(level.complete).lower()]
            writer.writerows([*about, *place, *row] for row in _rows(level))
    return out.getvalue()


def _rows(level: Level) -> Iterator[list[object]]:
    for outcome, n in level.counts.items():
        yield ["requests", _inert(outcome), n, None, None, None, "requests", n, None]
    for name, metric in level.metrics.items():
        for stat, one in metric.stats.items():
            note = _inert(metric.note) if metric.note else None
            yield [name, stat, one.value, one.low, one.high, one.method, metric.unit, metric.n, note]


def _inert(text: str) -> str:
    text = clean(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
