from __future__ import annotations

import asyncio

from enginebench.clock import monotonic_ns
from enginebench.mock.timer import DeadlineTimer
from enginebench.units import NS_PER_MS


async def fired_at(*offsets_ns: int) -> list[tuple[int, int]]:
    """Arms for each deadline when the last one has fired: (deadline, fired) pairs."""
    fired = asyncio.Event()
    timer = DeadlineTimer(asyncio.get_running_loop(), fired.set)
    pairs = []
    for offset_ns in offsets_ns:
        deadline_ns = max(monotonic_ns() + offset_ns, -1)
        timer.arm(deadline_ns)
        await asyncio.wait_for(fired.wait(), 10)
        pairs.append((deadline_ns, monotonic_ns()))
        fired.clear()
    timer.close()
    return pairs


def test_it_fires_once_for_each_deadline_and_never_early() -> None:
    pairs = asyncio.run(fired_at(3 * NS_PER_MS, NS_PER_MS // 2, 2 * NS_PER_MS))
    assert len(pairs) == 3
    assert all(fired_ns >= deadline_ns for deadline_ns, fired_ns in pairs)


def test_a_deadline_in_the_past_fires_at_once() -> None:
    assert len(asyncio.run(fired_at(-NS_PER_MS, -(10**18)))) == 2
