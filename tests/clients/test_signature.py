"""The client's stamps against a server that knows its own send times.

On loopback the kernel takes the receive stamp inside the sender's call. So a stamp that lies between
the server's clock readings before and after that call is right, whatever this machine is busy with.
"""

import asyncio
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from enginebench.clients.poller import new_event_loop
from enginebench.clients.socket import SocketClient
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture
from enginebench.model.client import Call, Endpoint
from enginebench.model.record import OUTPUT_KINDS
from enginebench.units import NS_PER_MS
from enginebench.wire.decode import decode

SERVER = Path(__file__).parents[1] / "fakes" / "timetable_server.py"
BUSY_MS = 8


def staggered(n_streams: int) -> list[list[tuple[float, int]]]:
    """Each stream a token every 10 ms, the streams spread over the interval."""
    return [[(10 * k + 10 * s / n_streams, 1) for k in range(30)] for s in range(n_streams)]


def bursty(n_streams: int) -> list[list[tuple[float, int]]]:
    """One to five tokens a send, in bursts of irregular sends with silence between them.

    Sends of one stream are over 1 ms apart: closer ones may share a stamp without being flagged.
    """
    rng = random.Random(5)
    return [
        [(200 * burst + at_ms, rng.randint(1, 5)) for burst in range(3) for at_ms in irregular(rng, 8)]
        for _ in range(n_streams)
    ]


def irregular(rng: random.Random, n: int) -> list[float]:
    return list(itertools.accumulate(rng.uniform(1.5, 8) for _ in range(n)))


def same_instant(n_streams: int) -> list[list[tuple[float, int]]]:
    """What continuous batching does: every stream answers in the same step."""
    return [[(25 * k, 1) for k in range(12)] for _ in range(n_streams)]


def keep_busy(until: asyncio.Event) -> None:
    """Takes the loop away for 8 ms at a time, as slow Python in the same process would."""
    end_ns = monotonic_ns() + BUSY_MS * NS_PER_MS
    while monotonic_ns() < end_ns:
        pass
    if not until.is_set():
        asyncio.get_running_loop().call_later(0.001, keep_busy, until)


async def fetch(port: int, n_streams: int, busy: bool) -> list[Capture]:
    client = SocketClient(Endpoint(f"http://127.0.0.1:{port}/v1/completions"))
    over = asyncio.Event()
    if busy:
        asyncio.get_running_loop().call_later(0.1, keep_busy, over)
    calls = [
        Call(s, "measure", monotonic_ns(), json.dumps({"prompt": f"stream {s}"}).encode())
        for s in range(n_streams)
    ]
    captures = await asyncio.gather(*(client.send(call) for call in calls))
    over.set()
    await client.close()
    return captures


def play(
    plan: list[list[tuple[float, int]]], folder: Path, busy: bool
) -> tuple[list[Capture], list[list[list[int]]]]:
    plan = [sorted(stream) for stream in plan]
    (folder / "plan").write_text(json.dumps(plan))
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(folder / "plan"), str(folder / "log")], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            captures = runner.run(fetch(port, len(plan), busy))
        assert server.wait(30) == 0
    return captures, json.loads((folder / "log").read_text())


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize(
    ("timetable", "n_streams"),
    [(staggered, 32), (bursty, 16), (same_instant, 256)],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_every_stamp_lies_inside_the_send_that_it_is_of(timetable, n_streams, busy, tmp_path):
    captures, log = play(timetable(n_streams), tmp_path, busy)
    n_inside = n_coalesced = 0
    outside_ns = []
    for capture, sends in zip(captures, log, strict=True):
        decoded = decode(capture)
        assert decoded.outcome == "ok"
        chunks = decoded.chunks
        output = [i for i, kind in enumerate(chunks.kind) if kind in OUTPUT_KINDS]
        assert len(output) == len(sends)
        for i, (before_ns, after_ns) in zip(output, sends, strict=True):
            arrived_ns = chunks.arrived_ns[i]
            assert arrived_ns is not None
            assert arrived_ns <= chunks.read_ns[i]
            if chunks.coalesced[i]:
                n_coalesced += 1
            elif before_ns <= arrived_ns <= after_ns:
                n_inside += 1
            else:
                outside_ns.append(max(before_ns - arrived_ns, arrived_ns - after_ns))
    n_judged = n_inside + len(outside_ns)
    worst_ns = max(outside_ns, default=0)
    print(f"{n_inside} of {n_judged} inside, {n_coalesced} coalesced, worst outside {worst_ns} ns")
    assert n_judged >= 0.2 * (n_judged + n_coalesced), "nearly everything coalesced: nothing was tested"
    assert n_inside >= 0.99 * n_judged
    assert worst_ns <= NS_PER_MS
