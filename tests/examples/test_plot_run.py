"""The example that plots a run, on a run folder made by hand."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analysis.rows import chunks, record, result, run

from enginebench.store import folder
from enginebench.store.records import RecordWriter

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_run.py"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """name -> {x, y} of every line in the file that the example writes."""
    here = tmp_path_factory.mktemp("plot")
    made = folder.create(here / "run", "x")
    cells = [result(level=level, span_ms=(0, 1000)) for level in (1, 4)]
    for cell in cells:
        with RecordWriter(made.records_path(cell.cell, 0)) as writer:
            for i in range(6):
                stream = [(1, "role", None), *chunks(100 + i, 200)]
                writer.add(record(0, stream, output_tokens=2, level=float(cell.cell.level)))
            writer.add(record(0, outcome="timeout", level=float(cell.cell.level)))
    made.write_meta({**run([]).meta, "cells": [folder.plain_cell(cell) for cell in cells]})

    out = here / "plot.html"
    subprocess.run([sys.executable, str(EXAMPLE), str(made.path), str(out)], check=True, capture_output=True)

    drawn = re.search(r"Plotly\.newPlot\(\s*\"[^\"]+\",\s*(\[.*?\]),\s*\{\"", out.read_text(), re.DOTALL)
    assert drawn is not None
    return {trace["name"]: trace for trace in json.loads(drawn[1])}


def test_throughput_and_median_are_drawn_at_every_level(traces: dict[str, dict[str, Any]]) -> None:
    assert traces["t: output_throughput"]["x"] == [1.0, 4.0]
    assert traces["t: output_throughput"]["y"] == [12.0, 12.0]
    assert traces["t: ttft"]["y"] == [102.5, 102.5]


def test_every_successful_request_is_a_point(traces: dict[str, dict[str, Any]]) -> None:
    assert plotted(traces["t"]["x"]) == [1.0] * 6 + [4.0] * 6
    assert plotted(traces["t"]["y"]) == pytest.approx([100, 101, 102, 103, 104, 105] * 2, abs=1e-3)


def plotted(array: dict[str, str]) -> list[float]:
    """plotly writes numpy arrays as base64."""
    values: list[float] = np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).tolist()
    return values
