from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from enginebench.errors import StorageError
from enginebench.mock.truth import KEEP_CHUNKS, Truth, TruthLog, parse_truth, read_truth, render_truth


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def request(name: str, late_ns: tuple[int, ...] = (0, 0)) -> Truth:
    return Truth(
        name, "chat", stream=True, arrived_ns=1, prompt_tokens=2, output_tokens=3, ending="complete",
        kind=["content"] * len(late_ns),
        sent_ns=[10 + late for late in late_ns],
        intended_ns=[10] * len(late_ns),
    )  # fmt: skip


def test_lines_read_back_what_was_written() -> None:
    requests = [request("a"), request("b", ())]
    assert parse_truth(render_truth(requests)) == requests


def test_the_file_gets_each_request_without_waiting_for_the_end(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    path, requests = tmp_path / "truth.jsonl", [request("a"), request("b"), request("c")]

    async def until_written() -> None:
        while path.read_bytes().count(b"\n") < len(requests):
            await asyncio.sleep(0)

    log = TruthLog(loop, str(path))
    for one in requests:
        log.ended(one)
    loop.run_until_complete(asyncio.wait_for(until_written(), 10))
    assert read_truth(path) == requests
    log.close()


def test_closing_writes_what_is_still_to_be_written_after_what_the_file_held(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    path = tmp_path / "truth.jsonl"
    for name in ("a", "b"):
        log = TruthLog(loop, str(path))
        log.ended(request(name))
        log.close()
    assert [one.id for one in read_truth(path)] == ["a", "b"]


def test_the_oldest_requests_are_forgotten_when_there_are_too_many_chunks(
    loop: asyncio.AbstractEventLoop,
) -> None:
    log = TruthLog(loop, None)
    half = (0,) * (KEEP_CHUNKS // 2)
    for name in ("a", "b", "c", "d"):
        log.ended(request(name, half))
    assert log.n_forgotten == 2
    assert [one.id for one in parse_truth(log.render())] == ["c", "d"]


def test_a_single_huge_request_is_kept(loop: asyncio.AbstractEventLoop) -> None:
    log = TruthLog(loop, None)
    log.ended(request("a", (0,) * (KEEP_CHUNKS + 1)))
    assert log.n_forgotten == 0


@pytest.mark.parametrize(
    ("late_ns", "said"),
    [
        ((), "n/a ms (median), n/a ms (p99)"),
        ((0,), "0.1 ms (median), 0.1 ms (p99)"),
        ((50_000, 150_000, 250_000), "0.2 ms (median), 0.3 ms (p99)"),
        ((99_999,) * 99 + (10**9,), "0.1 ms (median), 0.1 ms (p99)"),
        ((99_999,) * 9 + (10**9,), "0.1 ms (median), over 100 ms (p99)"),
    ],
)
def test_the_summary_says_how_late_chunks_were(
    loop: asyncio.AbstractEventLoop, late_ns: tuple[int, ...], said: str
) -> None:
    log = TruthLog(loop, None)
    log.ended(request("a", late_ns))
    log.close()
    assert log.summary().startswith(f"served 1 requests in {len(late_ns)} chunks")
    assert log.summary().endswith(said)


def test_a_file_that_cannot_be_written_is_one_line(loop: asyncio.AbstractEventLoop, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write the truth file"):
        TruthLog(loop, str(tmp_path / "no" / "truth.jsonl"))
