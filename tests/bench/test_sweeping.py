"""A temporary folder when all goes well, and when its owner is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.engines_unit.waiting import wait_until

from enginebench.bench.sweeping import swept

OWNER = """
import signal, sys
from pathlib import Path
from enginebench.bench.sweeping import swept
with swept(Path(sys.argv[1])):
    print("up", flush=True)
    signal.pause()
"""


def folder_with_a_file(at: Path) -> Path:
    folder = at / "folder"
    folder.mkdir()
    (folder / "file").write_text("x")
    return folder


def test_a_folder_whose_owner_ends_the_block_stays(tmp_path: Path) -> None:
    folder = folder_with_a_file(tmp_path)
    before = psutil.Process().children()
    with swept(folder):
        pass
    assert (folder / "file").exists()
    assert psutil.Process().children() == before


def test_a_folder_stays_when_the_block_fails(tmp_path: Path) -> None:
    folder = folder_with_a_file(tmp_path)
    with pytest.raises(ZeroDivisionError), swept(folder):
        raise ZeroDivisionError
    assert (folder / "file").exists()


def test_a_folder_whose_owner_is_killed_is_removed(tmp_path: Path) -> None:
    folder = folder_with_a_file(tmp_path)
    with subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not folder.exists(), "the folder is removed")
