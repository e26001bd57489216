from __future__ import annotations

import pytest
from typer.testing import CliRunner

from enginebench.cli.main import app


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("engines", "mock          enginebench mock (via process)"),
        ("scenarios", "How do latency and throughput change as more users talk to one engine at once?"),
    ],
)
def test_a_list_names_what_is_shipped_and_says_what_it_is(what: str, line: str) -> None:
    result = CliRunner().invoke(app, ["list", what])
    assert result.exit_code == 0
    assert line.split("  ")[0] in result.output
    assert line.split("  ")[-1].strip() in result.output


def test_an_unknown_shelf_is_a_mistake_of_the_person() -> None:
    result = CliRunner().invoke(app, ["list", "gpus"])
    assert result.exit_code == 2
    assert "engines" in result.output
