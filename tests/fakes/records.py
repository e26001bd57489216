"""Records for tests: a good one, and any field changed by name."""

from dataclasses import replace
from typing import Any

from enginebench.model.record import Chunks, Record

_GOOD = Record(
    target="t", load="concurrency", level=8.0, repeat=0, phase="measure", seq=0, session=None, turn=None,
    worker=0, endpoint="chat", engine_start=0,
    intended_ns=100, started_ns=101, connected_ns=None, tls_ns=None, sent_ns=110, headers_ns=200, done_ns=400,
    status=200, outcome="ok", error_kind=None, error_message=None, http_version="1.1", retried=False,
    connection_reused=True, clock_stepped=False, stamp_source="socket",
    chunks=Chunks(
        [200, 300], [210, 310], [False] * 2, [9, 9], [1, 1], [None, None], [0, 0], ["content", "content"]
    ),
    prompt_tokens=10, output_tokens=2, reasoning_tokens=None, cached_tokens=None, reference_tokens=None,
    token_source="usage", asked_prompt_tokens=8, asked_output_tokens=2, finish_reason="stop",
    prompt_sha256="sha", output_chars=2, output_bytes=2, text=None, server_timings=None, ratelimit=None,
    request_id=None,
)  # fmt: skip


def a_record(**changes: Any) -> Record:
    return replace(_GOOD, **changes)
