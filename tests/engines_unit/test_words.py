"""What engines say, made fit to be shown: secrets, logs, versions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from enginebench.engines.process import log_tail, redacted
from enginebench.engines.version import engine_version


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["vllm", "serve", "m"], ["vllm", "serve", "m"]),
        (["e", "--api-key", "sk-1", "--port", "1"], ["e", "--api-key", "***", "--port", "1"]),
        (["e", "--api-key=sk-1"], ["e", "--api-key=***"]),
        (["e", "--hf-token", "hf_1"], ["e", "--hf-token", "***"]),
        (["e", "--api_keys", "a"], ["e", "--api_keys", "***"]),
        (["e", "--max-total-tokens", "8"], ["e", "--max-total-tokens", "8"]),
        (["e", "--tokenizer", "t"], ["e", "--tokenizer", "t"]),
        (["e", "--api-key"], ["e", "--api-key"]),
    ],
)
def test_secrets_are_hidden_in_the_command_that_is_shown(argv: list[str], shown: list[str]) -> None:
    assert redacted(argv) == tuple(shown)


def test_the_tail_of_a_log_is_its_last_lines_without_anything_that_moves_a_cursor(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(100)) + b"\x1b[1;31mred\x1b[0m\x07\r\xff\n\n")
    assert log_tail(log).splitlines()[0] == "  line 87"
    assert log_tail(log).splitlines()[-2:] == ["  red", "  \ufffd"]


def test_secrets_are_hidden_in_the_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("args: api_key=['swordfish'], header Bearer abc, sk-1234567890\n")
    assert log_tail(log, secrets=["swordfish"]) == "  args: api_key=['***'], header Bearer ***, ***"


def test_a_log_that_was_cut_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("old\nnew\n")
    assert log_tail(log, start=4) == "  new"
    assert log_tail(log, start=4000) == "  old\n  new"
    assert log_tail(tmp_path / "absent.txt") == ""


def test_a_log_that_has_just_been_cut_ends_in_its_older_part(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("new\n")
    (tmp_path / "log.txt.1").write_text("old\nolder's last\n")
    assert log_tail(log) == "  old\n  older's last\n  new"
    assert log_tail(log, start=2) == "  w"  # the older part is of an earlier start


@pytest.mark.parametrize(
    ("code", "version"),
    [
        ("print(); print(' fake 1.2 '); print('more')", "fake 1.2"),
        ("import sys; print('version: 99', file=sys.stderr)", "version: 99"),
        ("import sys; print('a warning', file=sys.stderr); print('fake 1.2')", "fake 1.2"),
        ("print('fake 1.2'); raise SystemExit(1)", None),
        ("pass", None),
    ],
)
def test_the_version_is_the_first_line_that_the_command_prints(code: str, version: str | None) -> None:
    assert engine_version([sys.executable, "-S", "-c", code], {}) == version


def test_a_version_command_that_hangs_or_is_missing_is_no_version() -> None:
    assert engine_version([sys.executable, "-S", "-c", "import signal; signal.pause()"], {}, 0.2) is None
    assert engine_version(["no-such-server"], {}) is None
    assert engine_version([], {}) is None
