"""The spool of a running cell: current within seconds, and harmless when the disk is full."""

import errno
from typing import Any

from enginebench.bench.cell_spool import CURRENT_WITHIN_NS, CellSpool
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture, Read
from enginebench.store.spool import RequestFacts

FACTS = RequestFacts("sha", 1, 2)


class FakeFile:
    """Remembers what was appended; fails from the `fails_from`-th append on."""

    def __init__(self, fails_from: int = 10**6) -> None:
        self.appended: list[tuple[int, int]] = []
        self._fails_from = fails_from

    def append(self, capture: Capture, facts: RequestFacts, first_read: int = 0) -> int:
        if len(self.appended) >= self._fails_from:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.appended.append((capture.seq, first_read))
        return len(capture.reads)

    def flush(self) -> None: ...

    def close(self) -> None: ...


def in_flight(seq: int, age_ns: int = 2 * CURRENT_WITHIN_NS) -> Capture:
    started_ns = monotonic_ns() - age_ns
    return Capture(seq, "measure", started_ns, started_ns, reads=[Read(1, 2, 0, b"x")] * 3)


def spool_of(file: Any, captures: list[Capture]) -> CellSpool:
    return CellSpool(file, facts={c.seq: FACTS for c in captures})


def test_a_long_stream_is_written_before_it_ends_and_only_its_new_reads_later():
    file, capture = FakeFile(), in_flight(7)
    spool = spool_of(file, [capture])
    spool.keep_current([capture])
    spool.keep_current([capture])  # not due again yet
    capture.reads.append(Read(3, 4, 2, b"y"))
    capture.ending = "complete"
    spool.finished(capture, FACTS)
    assert file.appended == [(7, 0), (7, 3)]


def test_a_young_stream_is_left_alone():
    file, capture = FakeFile(), in_flight(7, age_ns=0)
    spool_of(file, [capture]).keep_current([capture])
    assert file.appended == []


def test_many_streams_are_written_a_share_at_a_time_and_all_within_the_bound():
    captures = [in_flight(seq) for seq in range(1000)]
    file = FakeFile()
    spool = spool_of(file, captures)
    spool.keep_current(captures)
    assert 0 < len(file.appended) <= 1000 // 40 + 1
    for _ in range(49):  # five seconds of calls
        spool.keep_current(captures)
    assert {seq for seq, _ in file.appended} == set(range(1000))


def test_a_full_disk_stops_the_load_once_and_says_what_to_do():
    told: list[str] = []
    captures = [in_flight(seq) for seq in range(3)]
    spool = spool_of(FakeFile(fails_from=1), captures)
    spool.failed = told.append
    for capture in captures:
        spool.finished(capture, FACTS)
    spool.close()
    (problem,) = told
    assert "No space left on device" in problem
    assert "--resume" in problem
