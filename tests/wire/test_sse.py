from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginebench.wire.sse import Event, SSEDecoder


def decoded(*pieces: bytes, close: bool = False) -> list[Event]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close() if close else events


RULES: dict[str, tuple[bytes, list[Event]]] = {
    "with a space": (b"data: a\n\n", [Event(b"a")]),
    "without a space": (b"data:a\n\n", [Event(b"a")]),
    "only one space goes": (b"data:  a \n\n", [Event(b" a ")]),
    "crlf": (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
    "cr": (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\rdata: c\r\r\n", [Event(b"a"), Event(b"b"), Event(b"c")]),
    "several data lines": (b"data: a\ndata:b\ndata\n\n", [Event(b"a\nb\n")]),
    "several data lines with crlf": (b"data: a\r\ndata: b\r\n\r\n", [Event(b"a\nb")]),
    "empty data": (b"data:\n\n", [Event(b"")]),
    "comment": (b": ping\n\ndata: a\n\n", [Event(b"ping", None, True), Event(b"a")]),
    "bare comment": (b":\n\n", [Event(b"", None, True)]),
    "comment inside an event": (b"data: a\n:x\ndata: b\n\n", [Event(b"x", None, True), Event(b"a\nb")]),
    "event name": (b"event: error\ndata: a\n\ndata: b\n\n", [Event(b"a", "error"), Event(b"b")]),
    "event name after the data": (b"data: a\nevent:x\n\n", [Event(b"a", "x")]),
    "event without data": (b"event: x\n\ndata: a\n\n", [Event(b"a")]),
    "id and retry": (b"retry: 3000\n\nid: 1\ndata: a\n\n", [Event(b"a")]),
    "unknown field": (b"dataset: 1\nfoo\n data: 2\ndata: a\n\n", [Event(b"a")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
    "byte order mark later is text": (b"\n\xef\xbb\xbfdata: a\n\n", []),
    "other line separators are text": (
        "data: a\u2028b\u0085c\u2029\x0b\x0c\x1c\n\n".encode(),
        [Event("a\u2028b\u0085c\u2029\x0b\x0c\x1c".encode())],
    ),
    "colons in the value": (b'data: {"a":": b"}\n\n', [Event(b'{"a":": b"}')]),
    "leading blank lines": (b"\n\r\n\ndata: a\n\n", [Event(b"a")]),
    "no blank line yet": (b"data: a\n", []),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule_holds_at_every_split(rule: str) -> None:
    raw, events = RULES[rule]
    assert decoded(raw) == events
    assert decoded(*(raw[i : i + 1] for i in range(len(raw)))) == events
    for i in range(len(raw) + 1):
        for j in range(i, len(raw) + 1):
            assert decoded(raw[:i], raw[i:j], raw[j:]) == events


def test_an_event_is_out_with_the_byte_that_ends_its_blank_line() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\n") == [Event(b"a")]
    assert decoder.feed(b"data: b\r\n\r") == [Event(b"b")]
    assert decoder.feed(b"\ndata: c\n\n") == [Event(b"c")]


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        (b"data: [DONE]", [Event(b"[DONE]")]),
        (b"data: [DONE]\n", [Event(b"[DONE]")]),
        (b"data: a\ndata: b", [Event(b"a\nb")]),
        (b"event: x\n", []),
        (b"", []),
        (b"data: a\n\n", [Event(b"a")]),
        (b"data: a\n\n:half a comm", [Event(b"a"), Event(b"half a comm", None, True)]),
    ],
)
def test_close_hands_out_an_event_without_its_blank_line(raw: bytes, events: list[Event]) -> None:
    assert decoded(raw, close=True) == events
    assert decoded(*(raw[i : i + 1] for i in range(len(raw))), close=True) == events


def test_a_long_line_in_tiny_reads_costs_no_more_than_its_length() -> None:
    # A decoder that joins or scans the line anew at each read would move 250 GB here.
    data = b"x" * (2 << 20)
    raw = b"data: " + data + b"\n\n"
    assert decoded(*(raw[i : i + 8] for i in range(0, len(raw), 8))) == [Event(data)]


def plain_events(raw: bytes) -> list[bytes]:
    """Data of the events, by the standard's own order of steps, on the whole body at once."""
    found, lines = [], []
    for line in re.split(rb"\r\n|\r|\n", raw)[:-1]:
        if line:
            name, _, value = line.partition(b":")
            lines += [value.removeprefix(b" ")] if name == b"data" else []
        elif lines:
            found.append(b"\n".join(lines))
            lines = []
    return found


PIECES = st.lists(
    st.sampled_from(
        [b"data", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"event", b"id", b"a", b"data: b\n\n"]
    ),
    max_size=40,
)


@given(PIECES)
def test_any_pieces_give_the_events_of_the_whole(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    assert [event.data for event in decoded(*pieces) if not event.is_comment] == plain_events(raw)
    assert decoded(raw) == decoded(*pieces)
