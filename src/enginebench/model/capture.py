"""What the network gave for one request. No interpretation; `wire.decode` makes a Record of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from enginebench.model.request import Phase

StampSource = Literal["packets", "socket", "read"]

Ending = Literal[
    "complete",  # the HTTP framing says the body is whole
    "closed",  # FIN before the framing said so
    "reset",  # RST, or any other socket error after the request was sent
    "connect_failed",
    "send_failed",
    "first_token_timeout",
    "idle_timeout",
    "total_timeout",
    "cancelled",  # we left: Ctrl-C, or the end of the drain
    "bad_http",  # bytes that are not HTTP/1.x
    "client_error",  # our own fault: descriptors, ports, memory
    "interrupted",  # read from the spool of a run that died
]


class Read(NamedTuple):
    """Body bytes that one `recvmsg` gave (HTTP framing removed). All times are monotonic ns."""

    arrived_ns: int | None
    """Kernel stamp of the last segment in this read; None where there was no such stamp."""
    read_ns: int
    """When the bytes were in our hands."""
    quiet_ns: int
    """The latest moment at which this socket was known to hold nothing unread: every byte of
    this read arrived after it."""
    body: bytes


@dataclass(slots=True)
class Capture:
    """One request on the wire. Filled while it lasts, by one client; read-only afterwards."""

    seq: int
    phase: Phase
    intended_ns: int
    started_ns: int
    """When the client began to work on it; `intended_ns` is when the schedule wanted it."""
    connected_ns: int | None = None
    """TCP connected, on a connection opened for this request; None when one was reused."""
    tls_ns: int | None = None
    sent_ns: int | None = None
    """The last request byte was handed to the socket."""
    headers_ns: int | None = None
    """Arrival of the read that completed the response headers."""
    done_ns: int | None = None
    """Arrival of the read that completed the response."""
    status: int | None = None
    http_version: str | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Response headers, names in lower case."""
    reads: list[Read] = field(default_factory=list)
    ending: Ending | None = None
    ending_detail: str | None = None
    connection_reused: bool = False
    retried: bool = False
    clock_stepped: bool = False
    saw_output: bool = False
    """Generated output was seen while it lasted."""
    stamp_source: StampSource = "read"
