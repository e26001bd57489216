"""How true are arrival times? The measuring client beside httpx, on one server's timetable.

A server in a process of its own sends one token to each of N streams in the same instant, 25 ms
apart, and reads its clock before and after every send. The error of an arrival time is how far it
lies outside those two readings. Both clients read the same timetable, one after the other, in
alternating rounds; the medians over rounds are printed, and their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from enginebench.clients.poller import new_event_loop
from enginebench.clients.socket import SocketClient
from enginebench.model.client import Call, Endpoint
from enginebench.model.record import OUTPUT_KINDS
from enginebench.wire.decode import decode

SERVER = Path(__file__).parents[1] / "tests" / "fakes" / "timetable_server.py"
Arrivals = list[list[int]]
"""Per stream, the arrival of each token in monotonic ns."""


def body(stream: int) -> bytes:
    return json.dumps({"prompt": f"stream {stream}"}).encode()


async def by_enginebench(url: str, n_streams: int) -> Arrivals:
    client = SocketClient(Endpoint(url))
    captures = await asyncio.gather(*(client.send(Call(s, "measure", 0, body(s))) for s in range(n_streams)))
    await client.close()
    arrivals = []
    for capture in captures:
        chunks = decode(capture).chunks
        arrivals.append(
            [
                arrived if arrived is not None else read
                for arrived, read, kind in zip(chunks.arrived_ns, chunks.read_ns, chunks.kind, strict=True)
                if kind in OUTPUT_KINDS
            ]
        )
    return arrivals


async def by_httpx(url: str, n_streams: int) -> Arrivals:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=None, limits=limits, trust_env=False) as client:

        async def one(stream: int) -> list[int]:
            async with client.stream("POST", url, content=body(stream)) as response:
                lines = response.aiter_lines()
                return [time.monotonic_ns() async for line in lines if line.startswith("data: {")]

        return await asyncio.gather(*(one(s) for s in range(n_streams)))


def errors_ms(
    client: Callable[[str, int], Awaitable[Arrivals]], n_streams: int, n_tokens: int
) -> NDArray[np.float64]:
    """How far outside the server's two clock readings each arrival lies."""
    plan = [[(25 * k, 1) for k in range(n_tokens)] for _ in range(n_streams)]
    with tempfile.TemporaryDirectory() as folder:
        plan_path, log_path = Path(folder, "plan"), Path(folder, "log")
        plan_path.write_text(json.dumps(plan))
        words = [sys.executable, str(SERVER), str(plan_path), str(log_path)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1/completions"
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                arrivals = np.array(runner.run(_as_coroutine(client(url, n_streams))), dtype=np.int64)
            server.wait(60)
        sends = np.array(json.loads(log_path.read_text()))
    outside = np.maximum(np.maximum(sends[..., 0] - arrivals, arrivals - sends[..., 1]), 0)
    flat: NDArray[np.float64] = outside.ravel() / 1e6
    return flat


async def _as_coroutine(work: Awaitable[Arrivals]) -> Arrivals:
    return await work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    p99: dict[str, list[float]] = {"enginebench": [], "httpx": []}
    for _ in range(asked.rounds):
        for name, client in (("enginebench", by_enginebench), ("httpx", by_httpx)):
            p99[name].append(float(np.percentile(errors_ms(client, asked.streams, asked.tokens), 99)))
    ours, theirs = (float(np.median(p99[name])) for name in ("enginebench", "httpx"))
    print(
        f"{asked.streams} streams in the same instant, {asked.rounds} rounds, error of arrival times at p99:"
    )
    # The clocks are read to about a microsecond: below that there is nothing to compare.
    ratio = f"{theirs / max(ours, 0.001):,.0f} times as far off"
    print(f"  enginebench {ours:.3f} ms, httpx {theirs:.1f} ms: {'at least ' if ours < 0.001 else ''}{ratio}")


if __name__ == "__main__":
    main()
