"""The protocol that every client keeps: our socket client, and later the witnesses and the ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from enginebench.model.capture import Capture
from enginebench.model.request import Phase
from enginebench.model.scenario import Timeouts


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. `headers` hold the API key: never printed, never stored."""

    url: str
    """Full URL of the completion endpoint, e.g. http://127.0.0.1:8000/v1/chat/completions."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass(frozen=True, slots=True)
class Call:
    """One encoded request, ready to be written."""

    seq: int
    phase: Phase
    intended_ns: int
    body: bytes


class Client(Protocol):
    """Sends calls and stamps what comes back. A failed request is a Capture, never an exception."""

    async def send(self, call: Call) -> Capture:
        """Returns when the response has ended, in whatever way."""
        ...

    def in_flight(self) -> Sequence[Capture]:
        """Captures that have begun and not ended, for the spool and the live view."""
        ...

    @property
    def chunks_read(self) -> int:
        """Chunks of all calls so far, for the live view."""
        ...

    def abort(self) -> None:
        """Ends every call in flight: each `send` then returns its capture, ending `cancelled`."""
        ...

    async def close(self) -> None: ...
