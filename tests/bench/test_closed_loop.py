"""The closed loop against a fake client: who is sent, in which phase, and when it ends."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from enginebench.bench.closed_loop import MAX_FAILURES_IN_A_ROW, Load, rough_outcome
from enginebench.bench.progress import FIELDS, Progress
from enginebench.bench.source import RequestSource
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture, Ending, Read
from enginebench.model.client import Call
from enginebench.model.plan import WARMUP_SEQ, Cell
from enginebench.model.request import Request
from enginebench.units import NS_PER_MS


class FakeClient:
    """Answers after a few turns of the loop, as the script for that call says."""

    def __init__(
        self,
        ending: Callable[[int], tuple[Ending, int | None]] = lambda n: ("complete", 200),
        has_output: bool = True,
    ) -> None:
        self._has_output = has_output
        self.calls: list[Call] = []
        self.most_in_flight = 0
        self._in_flight: dict[int, Capture] = {}
        self._ending = ending
        self._aborted = False

    @property
    def chunks_read(self) -> int:
        return len(self.calls)

    def in_flight(self) -> Sequence[Capture]:
        return list(self._in_flight.values())

    def abort(self) -> None:
        self._aborted = True

    async def close(self) -> None: ...

    async def send(self, call: Call) -> Capture:
        number = len(self.calls)
        self.calls.append(call)
        capture = Capture(call.seq, call.phase, call.intended_ns, started_ns=monotonic_ns())
        self._in_flight[call.seq] = capture
        self.most_in_flight = max(self.most_in_flight, len(self._in_flight))
        for _ in range(3 + number % 4):
            await asyncio.sleep(0)
        capture.ending, capture.status = ("cancelled", None) if self._aborted else self._ending(number)
        capture.saw_output = self._has_output and capture.status == 200
        del self._in_flight[call.seq]
        return capture


def a_cell(
    level: int, requests: int | None = None, warmup_ns: int = 0, duration_ns: int | None = None
) -> Cell:
    return Cell(
        "t",
        "concurrency",
        level,
        0,
        ordinal=3,
        warmup_ns=warmup_ns,
        duration_ns=duration_ns,
        requests=requests,
    )


def run(cell: Cell, client: FakeClient) -> tuple[Load, list[Capture], list[int]]:
    captures: list[Capture] = []
    marks: list[int] = []
    source = RequestSource(cell, lambda seq: Request(seq, "p", "sha", 4, 5), lambda request: b"{}")
    load = Load(
        cell,
        client,
        source,
        Progress([0] * len(FIELDS)),
        finished=lambda capture, facts: captures.append(capture),
        window_began=marks.append,
        first_pause_s=0.0,
    )
    asyncio.run(load.run())
    return load, captures, marks


def test_by_count_exactly_that_many_are_sent_in_order_and_never_more_than_the_cap_at_once():
    client = FakeClient()
    load, captures, marks = run(a_cell(4, requests=50), client)
    first = 3 << 32
    assert [call.seq for call in client.calls] == list(range(first, first + 50))
    assert {call.phase for call in client.calls} == {"measure"}
    assert client.most_in_flight == 4
    assert len(captures) == 50
    assert load.progress["ok"] == load.progress["sent"] == 50
    assert load.progress["in_flight"] == 0
    assert load.facts == {}
    assert len(marks) == 1


def test_by_count_the_window_ends_when_the_last_request_is_due():
    client = FakeClient()
    load, _, _ = run(a_cell(2, requests=9), client)
    assert load.progress["window_end_ns"] == client.calls[-1].intended_ns


def test_fewer_requests_than_users_are_not_topped_up():
    client = FakeClient()
    run(a_cell(16, requests=3), client)
    assert len(client.calls) == 3


def test_warm_up_sends_other_prompts_of_the_same_workload_before_the_window():
    client = FakeClient()
    load, captures, marks = run(a_cell(2, warmup_ns=30 * NS_PER_MS, duration_ns=30 * NS_PER_MS), client)
    start_ns, end_ns = load.progress["window_start_ns"], load.progress["window_end_ns"]
    warmups = [call for call in client.calls if call.phase == "warmup"]
    measured = [call for call in client.calls if call.phase == "measure"]
    assert warmups
    assert measured
    assert {call.seq for call in warmups} == {(3 << 32) + WARMUP_SEQ + i for i in range(len(warmups))}
    assert {call.seq for call in measured} == {(3 << 32) + i for i in range(len(measured))}
    assert all(call.intended_ns <= end_ns for call in client.calls[:-2])
    assert end_ns - start_ns == 30 * NS_PER_MS
    assert marks == [start_ns]
    assert load.progress["sent"] == len(measured)
    assert len(captures) == len(client.calls)


@pytest.mark.parametrize(
    ("ending", "status", "counted"),
    [
        ("complete", 200, "ok"),
        ("complete", 400, "error"),
        ("complete", 429, "rejected"),
        ("closed", 200, "error"),
        ("idle_timeout", 200, "timeout"),
        ("connect_failed", None, "error"),
    ],
)
def test_outcomes_are_counted_as_framing_and_status_show_them(ending, status, counted):
    load, _, _ = run(a_cell(1, requests=1), FakeClient(lambda n: (ending, status)))
    assert load.progress[counted] == 1
    assert load.problem is None


def test_an_answer_without_output_is_no_success():
    load, captures, _ = run(a_cell(1, requests=1000), FakeClient(has_output=False))
    assert load.progress["empty"] == len(captures) == MAX_FAILURES_IN_A_ROW
    assert load.problem is not None


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'data: {"error": {"message": "engine died"}}\n\n', "error"),
        (b'data: {"choices": [{"text": "say \\"error\\" twice"}]}\n\n', "ok"),
    ],
    ids=["an error in the band", "a word in the text"],
)
def test_an_error_event_is_told_from_generated_text(body, outcome):
    capture = Capture(0, "measure", 0, 0, status=200, ending="complete", saw_output=True)
    capture.reads.append(Read(1, 2, 0, body))
    assert rough_outcome(capture) == outcome


def test_a_row_of_failures_ends_the_cell_and_says_why():
    client = FakeClient(lambda n: ("complete", 500))
    load, captures, _ = run(a_cell(3, requests=1000), client)
    assert load.problem is not None
    assert "failed in a row, the last with: HTTP 500" in load.problem
    assert MAX_FAILURES_IN_A_ROW <= len(captures) <= MAX_FAILURES_IN_A_ROW + 3


def test_failures_between_successes_do_not_end_it():
    client = FakeClient(lambda n: ("complete", 200 if n % 10 == 0 else 500))
    load, captures, _ = run(a_cell(2, requests=100), client)
    assert load.problem is None
    assert len(captures) == 100
