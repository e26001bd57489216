"""The import rule: imports point left only, neighbours do not know each other, pure packages stay pure.

The rule is read from the syntax trees of src/, so imports inside functions and under TYPE_CHECKING
count like any other. CONTRIBUTING.md gives the reasons.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "enginebench"

GROUPS = (
    ("errors", "units", "clock"),
    ("model",),
    ("wire", "workload", "batching", "analysis"),
    ("report",),
    ("catalog", "store", "clients", "engines", "telemetry", "mock"),
    ("bench",),
    ("cli",),
)
RANK = {package: rank for rank, group in enumerate(GROUPS) for package in group}

# What enginebench/__init__.py shows, and the package it comes from.
SHOWN_AT_THE_TOP = {"load": "store", "Run": "model"}
# They join nothing: the door of the package, and `python -m enginebench`.
OUTSIDE_THE_GROUPS = ("__init__", "__main__")

PURE = ("wire", "workload", "batching", "analysis", "report")
EFFECTS = {
    *(
        "asyncio",
        "selectors",
        "select",
        "socket",
        "socketserver",
        "ssl",
        "http",
        "urllib",
        "ftplib",
        "smtplib",
    ),
    *("aiohttp", "httpx", "openai", "requests", "subprocess", "multiprocessing", "threading", "concurrent"),
    *("signal", "time", "sched", "os", "pathlib", "shutil", "tempfile", "glob", "fileinput", "mmap"),
    *("importlib", "pkgutil", "sqlite3", "enginebench.clock"),
}
EFFECT_CALLS = {"open", "input", "print", "io.open", "datetime.now", "datetime.utcnow", "date.today"}
DYNAMIC_IMPORTS = {"importlib.import_module", "import_module", "__import__"}


def faults(source: Path) -> list[str]:
    """Every breach of the rule under `source` (the enginebench package folder), one line each."""
    found = []
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        own = path.relative_to(source).with_suffix("").parts
        for line, fault in sorted(_faults_in(tree, own)):
            found.append(f"{path.relative_to(source)}:{line}: {fault}")
    return found


def _faults_in(tree: ast.Module, own: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    package = own[0]
    if package not in RANK and package not in OUTSIDE_THE_GROUPS:
        yield 1, f"{package} has no place in the import order"
        return
    for line, name in _imported(tree, own):
        if name is None:
            yield line, "imports a name that is only known when it runs; the rule cannot be checked"
            continue
        if package in PURE and _is_effect(name):
            yield line, f"{package} is pure and imports {name}"
        target = _package_of(name)
        if target is not None and not _may_import(package, target):
            yield line, f"{package} imports {target}"
    if package in PURE:
        yield from _effect_calls(tree, package)


def _imported(tree: ast.Module, own: tuple[str, ...]) -> Iterator[tuple[int, str | None]]:
    """(line, absolute dotted name) of all that a module imports, in whatever way; the name is None
    where only the running program knows it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, own)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and _dotted(node.value) == "enginebench":
            yield node.lineno, _dotted(node)
        elif isinstance(node, ast.Call) and _dotted(node.func) in DYNAMIC_IMPORTS:
            match node.args[:1]:
                case [ast.Constant(value=str(name))]:
                    yield node.lineno, name
                case _:
                    yield node.lineno, None


def _absolute(node: ast.ImportFrom, own: tuple[str, ...]) -> str:
    if not node.level:
        return node.module or ""
    parents = ("enginebench", *own)[: -node.level]
    return ".".join((*parents, *filter(None, [node.module])))


def _package_of(name: str) -> str | None:
    """Which package of ours a dotted name belongs to; None for foreign names and for `__version__`."""
    parts = name.split(".")
    if parts[0] != "enginebench" or len(parts) == 1 or parts[1].startswith("__"):
        return None
    return SHOWN_AT_THE_TOP.get(parts[1], parts[1])


def _may_import(package: str, target: str) -> bool:
    if package == target or package in OUTSIDE_THE_GROUPS:
        return True
    return target in RANK and RANK[target] < RANK[package]


def _is_effect(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in EFFECTS or ".".join(parts[:2]) in EFFECTS


def _effect_calls(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            if ".".join(name.split(".")[-2:]) in EFFECT_CALLS:
                yield node.lineno, f"{package} is pure and calls {name}()"


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return "?"


def test_imports_of_the_source_keep_the_rule() -> None:
    assert faults(SOURCE) == []


PLANTED = [
    ("wire/planted.py", "import asyncio\n", "wire is pure and imports asyncio"),
    ("wire/planted.py", "from pathlib import Path\n", "wire is pure and imports pathlib.Path"),
    ("wire/planted.py", "import urllib.request\n", "wire is pure and imports urllib.request"),
    (
        "analysis/planted.py",
        "from enginebench import clock\n",
        "analysis is pure and imports enginebench.clock",
    ),
    ("analysis/planted.py", "from enginebench.clock import monotonic_ns\n", "imports enginebench.clock"),
    ("report/planted.py", "def f(p):\n    return open(p)\n", "report is pure and calls open()"),
    ("report/planted.py", "import datetime\nx = datetime.datetime.now()\n", "calls datetime.datetime.now()"),
    ("analysis/planted.py", "from enginebench.report.tables import rows\n", "analysis imports report"),
    ("model/planted.py", "from enginebench.wire.sse import Event\n", "model imports wire"),
    ("wire/planted.py", "from enginebench.batching import scheduler\n", "wire imports batching"),
    ("store/planted.py", "import enginebench.catalog.shipped\n", "store imports catalog"),
    ("clients/planted.py", "def f():\n    from enginebench.bench import loop\n", "clients imports bench"),
    ("units.py", "from enginebench.errors import UserError\n", "units imports errors"),
    ("engines/planted.py", "from ..cli import run\n", "engines imports cli"),
    ("wire/planted.py", "from .. import analysis\n", "wire imports analysis"),
    ("workload/planted.py", "from enginebench import load\n", "workload imports store"),
    ("model/planted.py", "import enginebench\nrun = enginebench.load('x')\n", "model imports store"),
    (
        "mock/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from enginebench.bench.loop import Loop\n",
        "mock imports bench",
    ),
    (
        "store/planted.py",
        "import importlib\nimportlib.import_module('enginebench.cli')\n",
        "store imports cli",
    ),
    (
        "store/planted.py",
        "import importlib\nname = 'x'\nimportlib.import_module(name)\n",
        "cannot be checked",
    ),
    ("helpers.py", "", "helpers has no place in the import order"),
]


@pytest.mark.parametrize(("file", "content", "expected"), PLANTED, ids=[e for _, _, e in PLANTED])
def test_a_breach_is_reported(tmp_path: Path, file: str, content: str, expected: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)

    (found,) = faults(tmp_path)

    assert found.startswith(file)
    assert expected in found


def test_a_wrong_import_planted_in_a_copy_of_the_source_is_reported(tmp_path: Path) -> None:
    copy = Path(copytree(SOURCE, tmp_path / "enginebench", ignore=ignore_patterns("__pycache__")))
    before = faults(copy)
    victim = copy / "wire" / "sse.py"
    victim.write_text(victim.read_text() + "\n\ndef late():\n    from enginebench.bench import worker\n")

    (found,) = set(faults(copy)) - set(before)

    assert found.startswith("wire/sse.py:")
    assert found.endswith("wire imports bench")


def test_imports_that_point_left_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "loop.py").write_text(
        "import asyncio, time\n"
        "from enginebench import __version__\n"
        "from enginebench.analysis import metrics\n"
        "from enginebench.clients.socket import SocketClient\n"
        "from enginebench.bench.worker import work\n"
        "from . import probe\n"
    )
    assert faults(tmp_path) == []


def test_help_does_not_load_what_only_a_run_or_a_report_needs() -> None:
    code = (
        "import json, sys\n"
        "sys.argv = ['enginebench', '--help']\n"
        "from enginebench.cli.main import main\n"
        "try:\n    main()\n"
        "finally:\n    print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stderr))

    assert "enginebench.cli.main" in loaded
    heavy = {
        "pandas",
        "pyarrow",
        "scipy",
        "plotly",
        "numpy",
        "jinja2",
        "httpx",
        "openai",
        "psutil",
        "tokenizers",
    }
    assert loaded & heavy == set()
