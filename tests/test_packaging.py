"""The wheel, installed by itself, and the checkout, installed editable: both find what they ship.

Nothing is downloaded: the wheel is built with the hatchling of this environment and goes into a
virtual environment that borrows this one's other packages. scripts/build-check does it with an index.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import enginebench

REPOSITORY = Path(__file__).parents[1]
SHIPPED = ("scenarios", "launchers")


def _run(*argv: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in argv], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, REPOSITORY, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that holds the wheel and nothing of the checkout."""
    environment = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=environment)
    python = environment / "bin" / "python"
    _run(
        *(
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ),
        *("--no-index", "--no-deps", wheel),
        cwd=environment,
    )
    own = Path(
        _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=environment).strip()
    )
    # Only a path, so that the .pth file of the editable install in that folder is not followed.
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin"


def test_the_wheel_holds_every_shipped_file(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    package = {
        f"enginebench/{path.relative_to(REPOSITORY / 'src' / 'enginebench')}"
        for path in (REPOSITORY / "src" / "enginebench").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    beside = {
        f"enginebench/{path.relative_to(REPOSITORY)}"
        for name in SHIPPED
        for path in (REPOSITORY / name).rglob("*")
    }

    assert "enginebench/py.typed" in package
    assert "enginebench/scenarios/quickstart.yaml" in beside
    assert package | beside <= held
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_an_installed_wheel_runs_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    where = _run(installed / "python", "-c", "import enginebench; print(enginebench.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)

    command = installed / "enginebench"
    assert _run(command, "--version", cwd=tmp_path).strip() == enginebench.__version__
    for what, name in (("scenarios", "scenarios"), ("engines", "launchers")):
        listed = _run(command, "list", what, cwd=tmp_path)
        assert all(path.stem in listed for path in (REPOSITORY / name).glob("*.yaml"))
    assert "mock" in _run(command, "run", "scenarios/quickstart.yaml", "--dry-run", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_editable_install_finds_the_files_of_the_checkout(tmp_path: Path) -> None:
    code = "from enginebench.catalog.shipped import folder; print(*map(folder, {}), sep='\\n')"
    found = _run(sys.executable, "-c", code.format(SHIPPED), cwd=tmp_path).splitlines()
    assert found == [str(REPOSITORY / name) for name in SHIPPED]


def test_the_version_of_the_metadata_is_that_of_the_package(wheel: Path) -> None:
    metadata = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert f"\nVersion: {enginebench.__version__}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    assert "\nRequires-Python: >=3.11\n" in text
