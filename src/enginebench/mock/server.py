"""Start, serve, stop: the process around a mock engine."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import socket
import sys

from enginebench.errors import UserError
from enginebench.mock.config import MockConfig
from enginebench.mock.http import Connection
from enginebench.mock.service import Service

_BACKLOG = 4096
"""A level's users connect in the same instant; asyncio's own 100 would make some of them wait a second."""


def run(config: MockConfig, lifeline_fd: int | None = None) -> None:
    """Serve until SIGTERM, SIGINT, or the end of file on `lifeline_fd`.

    Raises UserError when the address cannot be used and StorageError when the truth file cannot.
    """
    asyncio.run(_serve(config, lifeline_fd))


async def _serve(config: MockConfig, lifeline_fd: int | None) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    if lifeline_fd is not None:
        loop.add_reader(lifeline_fd, _watch_lifeline, lifeline_fd, stop)
    _raise_descriptor_limit()
    service = Service(config, loop)
    connections: set[Connection] = set()
    try:
        server = await _listen(config, service, connections)
        # What exists by now lives as long as the server: no collection needs to look at it again.
        gc.collect()
        gc.freeze()
        print(f"listening on {base_url(config.host, server.sockets[0])}", flush=True)
        await stop.wait()
        server.close()
        for connection in list(connections):
            connection.stop()
        await asyncio.sleep(0)  # the turn of the loop in which aborted connections close
    finally:
        service.close()
    print(service.truth.summary(), file=sys.stderr)


async def _listen(config: MockConfig, service: Service, connections: set[Connection]) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(
            lambda: Connection(service.handle, connections, loop.call_later),
            config.host,
            config.port,
            backlog=_BACKLOG,
        )
    except OSError as error:
        raise UserError(
            f"cannot listen on {config.host} port {config.port}: {error.strerror}; "
            "choose another port, or 0 for any free one"
        ) from error


def base_url(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"


def _watch_lifeline(fd: int, stop: asyncio.Event) -> None:
    if not os.read(fd, 4096):
        asyncio.get_running_loop().remove_reader(fd)
        stop.set()


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
