"""Every scenario that comes with enginebench can be planned as it stands, without its engines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from enginebench.catalog.shipped import folder, names


@pytest.mark.parametrize("name", names("scenarios"))
def test_a_shipped_scenario_opens_with_its_question_and_passes_the_dry_run(name: str, tmp_path: Path) -> None:
    first = (folder("scenarios") / f"{name}.yaml").read_text().split("\n#\n")[0]
    assert first.startswith("# ")
    assert "?" in first
    asked = [sys.executable, "-m", "enginebench", "run", name, "--dry-run"]
    env = {**os.environ, "ENGINEBENCH_ENGINES": str(tmp_path), "LOCAL_VS_API_KEY": "any"}
    done = subprocess.run(asked, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{name}: " in done.stdout
    assert list(tmp_path.iterdir()) == []
