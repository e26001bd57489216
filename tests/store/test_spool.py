"""Captures through the spool and back, whole or cut off anywhere."""

from pathlib import Path

import pytest

from enginebench.model.capture import Capture, Read
from enginebench.model.plan import Cell
from enginebench.store.spool import CellHeader, RequestFacts, Spool, read_spool

HEADER = CellHeader(Cell("t", "concurrency", 8, 1, 2, 0, None, 5), "chat", 0, 0)
FACTS = RequestFacts("sha", 10, 20)


def a_capture(seq: int, n_reads: int, ending: str | None = "complete") -> Capture:
    reads = [Read(seq + i, seq + i + 1, seq, b"body %d" % i) for i in range(n_reads)]
    return Capture(
        seq, "measure", 1, 2, sent_ns=3, status=200, headers=[("a", "b")], reads=reads, ending=ending
    )  # type: ignore[arg-type]


def write(path: Path, *captures: Capture, secrets: tuple[str, ...] = ()) -> bytes:
    spool = Spool(path, HEADER, secrets)
    for capture in captures:
        spool.append(capture, FACTS)
    spool.close()
    return path.read_bytes()


def test_captures_come_back_as_they_were_in_the_order_in_which_they_ended(tmp_path):
    captures = [a_capture(1, 3), a_capture(2, 0, "connect_failed"), a_capture(3, 1)]
    write(tmp_path / "s", *captures)
    reader = read_spool(tmp_path / "s")
    assert reader.header == HEADER
    assert list(reader) == [(c, FACTS) for c in captures]
    assert reader.window_start_ns is None


def test_a_capture_written_part_by_part_is_one_capture_with_its_last_scalars(tmp_path):
    spool = Spool(tmp_path / "s", HEADER)
    growing = a_capture(1, 2, None)
    written = spool.append(growing, FACTS)
    growing.reads.append(Read(None, 9, 8, b"later"))
    growing.ending, growing.done_ns = "complete", 99
    spool.append(growing, FACTS, written)
    spool.close()
    assert list(read_spool(tmp_path / "s")) == [(growing, FACTS)]


def test_what_never_ended_comes_last_as_interrupted(tmp_path):
    write(tmp_path / "s", a_capture(1, 2, None), a_capture(2, 1))
    (first, _), (second, _) = read_spool(tmp_path / "s")
    assert (first.seq, first.ending) == (2, "complete")
    assert (second.seq, second.ending, len(second.reads)) == (1, "interrupted", 2)


def test_the_mark_of_the_window_is_found(tmp_path):
    spool = Spool(tmp_path / "s", HEADER)
    spool.mark_window(1234)
    spool.close()
    reader = read_spool(tmp_path / "s")
    assert list(reader) == []
    assert reader.window_start_ns == 1234


def test_a_file_cut_at_any_byte_gives_the_captures_before_the_cut(tmp_path):
    raw = write(tmp_path / "s", a_capture(1, 2), a_capture(2, 2), a_capture(3, 2))
    whole = list(read_spool(tmp_path / "s"))
    n_readable = []
    for cut in range(len(raw)):
        (tmp_path / "cut").write_bytes(raw[:cut])
        try:
            reader = read_spool(tmp_path / "cut")
        except ValueError:
            continue  # the header itself is cut
        read = list(reader)
        assert read == whole[: len(read)]
        n_readable.append(len(read))
    assert n_readable == sorted(n_readable)
    assert set(n_readable) == {0, 1, 2}


@pytest.mark.parametrize("content", [b"", b"\x00", b"\xff\xff\xff\xff", b"\x02\x00\x00\x00\xc1\xc1"])
def test_a_file_without_a_header_is_refused(tmp_path, content):
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(ValueError, match="no readable header"):
        read_spool(tmp_path / "s")


def test_secrets_reach_the_disk_neither_in_bodies_nor_in_headers(tmp_path):
    leaking = a_capture(1, 0)
    leaking.reads.append(Read(1, 2, 0, b'{"error": "Incorrect key sk-topsecret"}'))
    leaking.headers = [("x-echo", "Bearer sk-topsecret")]
    raw = write(tmp_path / "s", leaking, secrets=("sk-topsecret",))
    assert b"topsecret" not in raw
    ((capture, _),) = read_spool(tmp_path / "s")
    assert capture.reads[0].body == b'{"error": "Incorrect key ************"}'
    assert leaking.reads[0].body.endswith(b'sk-topsecret"}'), "the capture itself stays as it came"


@pytest.mark.parametrize("cut", range(1, len("sk-topsecret")))
def test_a_secret_cut_by_the_border_of_two_reads_is_struck_out_too(tmp_path, cut):
    leaking = a_capture(1, 0, None)
    leaking.reads = [
        Read(1, 2, 0, b"key sk-topsecret"[: 4 + cut]),
        Read(3, 4, 2, b"sk-topsecret"[cut:] + b" tail"),
    ]
    spool = Spool(tmp_path / "s", HEADER, ("sk-topsecret",))
    written = spool.append(leaking, FACTS)
    leaking.ending = "complete"
    spool.append(leaking, FACTS, written)
    spool.close()
    ((capture, _),) = read_spool(tmp_path / "s")
    assert b"".join(read.body for read in capture.reads) == b"key ************ tail"
    assert [len(read.body) for read in capture.reads] == [len(read.body) for read in leaking.reads]
