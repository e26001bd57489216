"""A run that died: what its spool holds becomes records, and nothing is thrown away."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.store.test_spool import FACTS, HEADER, a_capture

import enginebench
from enginebench.errors import StorageError, UserError
from enginebench.store.folder import RunFolder, create
from enginebench.store.recover import decode_spool
from enginebench.store.spool import Spool


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that died in its first cell, with three captures in its spool."""
    made = create(tmp_path / "run", "x")
    target = {"name": "t", "engine": "e", "endpoint": "chat", "problem": None}
    meta: dict[str, Any] = {
        "format": 1, "name": "x", "status": "running", "created_utc": "", "hosts": [{"hostname": "h"}],
        "scenario": {"targets": [{"name": "t"}], "workload": {}}, "targets": [target], "cells": [],
    }  # fmt: skip
    made.write_meta(meta)
    spool = Spool(made.spool_path(HEADER.cell, 0), HEADER)
    for seq in range(3):
        spool.append(a_capture(seq, 1), FACTS)
    spool.close()
    return made


def test_the_spool_of_a_dead_run_becomes_records_and_a_broken_off_cell(folder):
    run = enginebench.load(folder.path)
    assert run.meta["status"] == "crashed"
    assert len(run.frame()) == 3
    (cell,) = run.cells
    assert not cell.finished
    assert folder.spools() == []


def test_loading_twice_gives_the_same(folder):
    first, second = (enginebench.load(folder.path) for _ in range(2))
    assert first.frame().seq.tolist() == second.frame().seq.tolist()


def test_an_empty_spool_is_removed_and_an_unreadable_one_is_kept_and_named(folder):
    (folder.path / "spool" / "empty.spool").touch()
    (folder.path / "spool" / "odd.spool").write_bytes(b"of another version")
    run = enginebench.load(folder.path)
    left = {path.name for path in (folder.path / "spool").iterdir()} - {"lock"}
    assert left == {"odd.unreadable"}
    assert "odd.unreadable" in run.meta["notes"][0]


def test_a_key_that_the_server_echoed_is_struck_out_of_the_records_too(folder, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "hunter-zebra")
    meta = json.loads(folder.meta_path.read_text())
    meta["scenario"]["targets"][0]["api_key_env"] = "SOME_KEY"
    folder.write_meta(meta)
    leaking = a_capture(9, 0)
    leaking.status = 401
    leaking.reads = [a_capture(0, 1).reads[0]._replace(body=b'{"error": "bad key h\\u0075nter-zebra"}')]
    spool = Spool(folder.spool_path(HEADER.cell, 0), HEADER)
    spool.append(leaking, FACTS)
    spool.close()
    (message,) = enginebench.load(folder.path).frame().error_message
    assert "zebra" not in message


def test_a_spool_is_kept_when_its_records_cannot_be_written(folder):
    path = folder.spool_path(HEADER.cell, 0)
    with pytest.raises(StorageError, match="enginebench report"):
        decode_spool(path, folder.path / "no-such-folder" / "x.parquet", (), keep_text=False)
    assert path.exists()


@contextmanager
def without_rights_of_root() -> Iterator[None]:
    """Root may write anywhere: as somebody else, for a while."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was == 0:
            os.seteuid(0)


def test_a_folder_that_cannot_be_written_is_shown_as_it_is(folder):
    """A copy on a read-only disk, say: the records that are there, and the spool as it was."""
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o755)
        copy = Path(shutil.copytree(folder.path, Path(open_to_all) / "run"))
        spools = {path.name: path.read_bytes() for path in (copy / "spool").iterdir()}
        enginebench.load(folder.path)  # whoever we are next may not be able to import anything
        copy.chmod(0o555)
        (copy / "spool").chmod(0o555)
        with without_rights_of_root():
            assert len(enginebench.load(copy).frame()) == 0
        (copy / "spool").chmod(0o755)
        copy.chmod(0o755)
        assert {path.name: path.read_bytes() for path in (copy / "spool").iterdir()} == spools


def test_a_finished_cell_whose_records_are_gone_is_not_finished(folder):
    enginebench.load(folder.path)
    meta = json.loads(folder.meta_path.read_text())
    meta["cells"][0]["finished"] = True
    folder.write_meta(meta)
    folder.records_path(HEADER.cell, 0).unlink()
    (cell,) = enginebench.load(folder.path).cells
    assert not cell.finished
    assert "records are gone" in (cell.problem or "")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', "null", '{"format": "1"}'])
def test_a_damaged_run_json_is_named(folder, content):
    folder.meta_path.write_text(content)
    with pytest.raises(StorageError, match=r"run\.json"):
        enginebench.load(folder.path)


def test_a_newer_format_asks_for_an_upgrade(folder):
    folder.meta_path.write_text('{"format": 99}')
    with pytest.raises(StorageError, match="upgrade enginebench"):
        enginebench.load(folder.path)


def test_keys_of_a_newer_version_in_a_cell_are_left_out(folder):
    enginebench.load(folder.path)
    meta = json.loads(folder.meta_path.read_text())
    meta["cells"][0]["from_the_future"] = 1
    folder.write_meta(meta)
    assert len(enginebench.load(folder.path).cells) == 1


def test_a_folder_that_is_no_run_is_said_to_be_none(tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        enginebench.load(tmp_path)
