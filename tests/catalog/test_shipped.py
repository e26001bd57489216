from __future__ import annotations

from pathlib import Path

import pytest

from enginebench.catalog.shipped import find, folder, names
from enginebench.errors import ConfigError

QUICKSTART = folder("scenarios") / "quickstart.yaml"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "asked", ["quickstart", "quickstart.yaml", "scenarios/quickstart.yaml", "scenarios/quickstart"]
)
def test_a_shipped_scenario_is_found_from_any_folder(elsewhere: Path, asked: str) -> None:
    assert find("scenarios", asked) == QUICKSTART


def test_a_local_file_wins_over_a_shipped_one_of_the_same_path(elsewhere: Path) -> None:
    (elsewhere / "scenarios").mkdir()
    mine = elsewhere / "scenarios" / "quickstart.yaml"
    mine.write_text("name: mine\n")
    assert find("scenarios", "scenarios/quickstart.yaml").resolve() == mine
    assert find("scenarios", str(mine)) == mine


def test_a_bare_word_means_the_shipped_file_even_beside_a_program_of_that_name(elsewhere: Path) -> None:
    (elsewhere / "mock").write_text("#!/bin/sh\n")
    assert find("launchers", "mock") == folder("launchers") / "mock.yaml"
    assert find("launchers", "./mock") == Path("mock")


def test_a_bare_word_that_is_not_shipped_may_be_a_local_file(elsewhere: Path) -> None:
    (elsewhere / "mine").write_text("name: mine\n")
    assert find("scenarios", "mine") == Path("mine")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("quickstrat", "did you mean quickstart?"),
        ("scenarios/quickstat.yaml", "did you mean quickstart?"),
        ("x", "shipped are: "),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(elsewhere: Path, asked: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find("scenarios", asked)
    assert f"no scenario {asked!r}" in str(caught.value)
    assert hint in str(caught.value)
    assert "enginebench list scenarios" in str(caught.value)


def test_a_folder_is_not_a_scenario(elsewhere: Path) -> None:
    (elsewhere / "sub").mkdir()
    with pytest.raises(ConfigError, match="sub is a folder; name one scenario file in it"):
        find("scenarios", "sub")


def test_names_are_those_of_the_files() -> None:
    assert "quickstart" in names("scenarios")
    assert "mock" in names("launchers")
