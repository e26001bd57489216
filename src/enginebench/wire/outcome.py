"""How a request ended: its outcome, and the stable word for what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from enginebench.model.capture import Ending
from enginebench.model.record import Outcome

ERROR_KINDS: Mapping[str, str] = {
    "http_<status>": "an HTTP status other than 2xx, e.g. http_429; outcome `rejected` for 429 and 503",
    "in_band_error": "status 200, and a body that is an error instead of a stream",
    "stream_error": "an event of the stream was an error, or a choice finished with an error",
    "malformed_event": "the data of an event was not a JSON object",
    "unexpected_body": "status 200, and a body that is neither a stream nor a completion: HTML, gzip",
    "no_output": "the response ended in order without any generated output; outcome `empty`",
    "truncated_clean_eof": "the body ended in order, but before any finish reason",
    "connection_closed": "the server closed the connection before the response was whole",
    "connection_reset": "the connection was reset before the response was whole",
    "first_token_timeout": "no generated output within the first-token timeout",
    "idle_timeout": "silence longer than the idle timeout",
    "total_timeout": "the response took longer than the total timeout",
    "connect_failed": "no connection: refused, unreachable, name not found, or TLS failed",
    "send_failed": "the connection broke while the request was being written",
    "bad_http": "the server sent bytes that are not HTTP/1.x, or oversized headers",
    "client_error": "the client itself failed: descriptors, ports, memory",
    "cancelled": "we left: Ctrl-C, or the end of the drain",
    "interrupted": "the run died while the request was in flight",
}
"""Every `error_kind` and its meaning; docs/formats.md quotes them."""

REJECTED_STATUSES = frozenset({429, 503})

_OWN_ERRORS = frozenset({"connect_failed", "send_failed", "bad_http", "client_error"})
_LEFT = frozenset({"cancelled", "interrupted"})
_TIMEOUTS = frozenset({"first_token_timeout", "idle_timeout", "total_timeout"})
_KIND_OF_ENDING: Mapping[Ending, str] = {
    "complete": "truncated_clean_eof",
    "closed": "connection_closed",
    "reset": "connection_reset",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """What the body said, as far as the outcome depends on it."""

    error_kind: str | None
    """in_band_error, stream_error, malformed_event or unexpected_body; None if no error was seen."""
    finished: bool
    """Every choice that was seen gave a finish reason, or a complete JSON answer was read."""
    has_output: bool
    is_silent: bool
    """Nothing but pings and `[DONE]`."""


def judge(status: int | None, ending: Ending | None, heard: Heard) -> tuple[Outcome, str | None]:
    """Outcome and error kind of a request.

    Success is a finish reason, no error and a complete body; `[DONE]` neither makes nor breaks
    it. What the server said goes before how the connection ended.
    """
    if status is not None and not 200 <= status < 300:
        return "rejected" if status in REJECTED_STATUSES else "error", f"http_{status}"
    if heard.error_kind is not None:
        return "error", heard.error_kind
    ending = ending or "interrupted"
    if ending in _OWN_ERRORS:
        return "error", ending
    if ending in _LEFT:
        return "cancelled", ending
    is_whole = status is not None and ending == "complete"
    if is_whole and heard.finished:
        return ("ok", None) if heard.has_output else ("empty", "no_output")
    if is_whole and heard.is_silent:
        return "empty", "no_output"
    kind = _KIND_OF_ENDING.get(ending, ending)
    if heard.has_output:
        return "truncated", kind
    return "timeout" if ending in _TIMEOUTS else "error", kind
