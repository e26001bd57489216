"""What a reader relies on: links that lead somewhere, pages that keep up with the code, readable sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from enginebench import errors
from enginebench.analysis.checks import CHECKS
from enginebench.analysis.levels import DISTRIBUTIONS, RATES
from enginebench.analysis.stats import QUANTILES, minimum_samples
from enginebench.catalog.plan import cells
from enginebench.catalog.scenario import load_scenario
from enginebench.model.record import CHUNK_KINDS, OUTCOMES
from enginebench.store.records import SCHEMA
from enginebench.wire.outcome import ERROR_KINDS

REPOSITORY = Path(__file__).parents[1]
FOLDERS = (".ci", "benchmarks", "docs", "examples", "launchers", "scenarios", "scripts", "src", "tests")
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
SCENARIOS = sorted((REPOSITORY / "scenarios").glob("*.yaml"))
MODULES = sorted((REPOSITORY / "src").rglob("*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def _texts() -> Iterator[tuple[str, str]]:
    folders = (path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*"))
    for path in (*REPOSITORY.glob("*.*"), REPOSITORY / "Makefile", *folders):
        if path.is_file() and "__pycache__" not in path.parts:
            yield _name(path), path.read_bytes().decode("utf-8", "replace")


def _headings(page: Path) -> set[str]:
    """Anchors as GitHub makes them: lower case, punctuation dropped, spaces to hyphens."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.+?) *$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in _headings(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [REPOSITORY / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.is_file():
            reached.add(page)
            links = re.findall(r"\]\(([^)\s#:]+\.md)", page.read_text())
            waiting += [(page.parent / link).resolve() for link in links]
    assert [_name(page) for page in PAGES if page not in reached] == []


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    places = re.compile(
        r"(?<![\w.])/(?:home|Users|work|mnt)/\w+|(?<![\w.])/root/(?!\.cache/)\w|[A-Z]:\\\\?Users"
    )
    found = [f"{name}: {match[0]}" for name, text in _texts() for match in places.finditer(text)]
    assert [line for line in found if not line.startswith("tests/test_repository.py")] == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_name)
def test_a_scenario_opens_with_its_question(scenario: Path) -> None:
    first = scenario.read_text().splitlines()[0]
    assert re.fullmatch(r"# \S.*", first)


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog
    assert "### Changes that move a number" in changelog


def _first_cells(page: str, heading: str) -> list[str]:
    """Words in code marks in the first column of the tables under a heading."""
    text = (REPOSITORY / page).read_text()
    section = re.split(r"^#+ ", text.split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("|")]
    return [word for cell in rows for word in re.findall(r"`([^`]+)`", cell)]


def test_the_formats_page_lists_every_record_column_in_order() -> None:
    assert _first_cells("docs/formats.md", "## Records") == SCHEMA.names


def test_the_formats_page_gives_the_type_of_every_record_column() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \|", (REPOSITORY / "docs" / "formats.md").read_text(), re.MULTILINE
    )
    listed = {name: kind for name, kind in rows if name in SCHEMA.names}
    assert listed == {field.name: _type_in_words(field.type) for field in SCHEMA}


def _type_in_words(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        element = _type_in_words(kind.value_type)
        return "list of words" if element == "word" else f"list of {element}"
    if pa.types.is_dictionary(kind):
        return "word"
    return {"string": "str", "double": "float64"}.get(str(kind), str(kind))


def test_the_formats_page_lists_every_word_that_a_record_can_hold() -> None:
    assert set(_first_cells("docs/formats.md", "### Outcomes")) == set(OUTCOMES)
    assert set(_first_cells("docs/formats.md", "### Chunk kinds")) == set(CHUNK_KINDS)
    assert set(_first_cells("docs/formats.md", "### Error kinds")) == set(ERROR_KINDS)


def test_the_formats_page_lists_every_metric_in_order() -> None:
    listed = _first_cells("docs/formats.md", "## summary.json")
    assert [name for name in listed if name in {*DISTRIBUTIONS, *RATES}] == [*DISTRIBUTIONS, *RATES]


def test_the_method_page_lists_every_check_in_order() -> None:
    assert _first_cells("docs/method.md", "## Checks") == list(CHECKS)


def test_the_method_page_gives_the_least_samples_of_each_percentile() -> None:
    row = "| least n | " + " | ".join(str(minimum_samples(q)) for q in QUANTILES.values()) + " |"
    assert row in (REPOSITORY / "docs" / "method.md").read_text()


def test_the_readme_lists_every_exit_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    used = {str(kind.exit_code) for kind in kinds if issubclass(kind, errors.EnginebenchError)}
    assert used <= set(_first_cells("README.md", "## Exit codes"))


def _functions(module: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_module_has_more_than_400_lines() -> None:
    assert [_name(module) for module in MODULES if len(module.read_text().splitlines()) > 400] == []


def test_no_function_has_more_than_60_lines() -> None:
    assert [
        f"{_name(module)}: {function.name}"
        for module in MODULES
        for function in _functions(module)
        if function.end_lineno is not None and function.end_lineno - function.lineno >= 60
    ] == []


def test_no_function_takes_more_than_5_parameters() -> None:
    # A command's parameters are its options on the command line.
    inside = [module for module in MODULES if "cli" not in module.parts]
    assert [
        f"{_name(module)}: {function.name}"
        for module in inside
        for function in _functions(module)
        if len([a for a in (*function.args.args, *function.args.kwonlyargs) if a.arg not in ("self", "cls")])
        > 5
    ] == []


def test_every_script_can_be_called() -> None:
    scripts = [path for path in (REPOSITORY / "scripts").iterdir() if path.is_file() and path.suffix != ".py"]
    assert scripts
    assert [
        _name(path) for path in (*scripts, REPOSITORY / ".ci" / "run") if not path.stat().st_mode & 0o100
    ] == []


def test_the_scenario_in_the_readme_can_be_run(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    (tmp_path / "batch-limit.yaml").write_text(example)
    scenario = load_scenario(tmp_path / "batch-limit.yaml")
    assert len(cells(scenario)) == 2 * 3 * 3
