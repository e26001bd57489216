"""The derived files of a run folder: rebuilt from the records at any time, by newer code."""

from __future__ import annotations

import json
from pathlib import Path

from enginebench.analysis.summary import to_plain
from enginebench.analysis.timeline import details
from enginebench.model.run import Run
from enginebench.model.summary import Summary
from enginebench.report.html import html
from enginebench.report.markdown import markdown
from enginebench.store.folder import write_atomically


def write_reports(run: Run) -> tuple[Summary, Path]:
    """Writes summary.json, report.md and report.html; returns the summary and the HTML's path.
    Raises StorageError."""
    summary = run.summary()
    write_atomically(run.folder / "summary.json", json_bytes(summary))
    write_atomically(run.folder / "report.md", markdown(summary, run.meta).encode())
    path = run.folder / "report.html"
    write_atomically(path, html(summary, run.meta, details(run)).encode())
    return summary, path


def json_bytes(summary: Summary) -> bytes:
    return json.dumps(to_plain(summary), indent=1, allow_nan=False).encode() + b"\n"
