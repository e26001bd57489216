"""Nothing that a server sends raises, and how the network cuts it never matters."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.playback import Script, facts, in_one_read, one_write, play, sse_capture

from enginebench.model.capture import Ending
from enginebench.model.record import CHUNK_KINDS, OUTCOMES, Decoded
from enginebench.wire.decode import FirstOutput, decode
from enginebench.wire.outcome import ERROR_KINDS

HEADS = [
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 500 Oops\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
]
FIELDS = [
    "choices", "delta", "message", "content", "text", "index", "finish_reason", "usage", "error", "timings",
    "object", "completion_tokens", "prompt_tokens", "completion_tokens_details", "tool_calls", "function",
    "arguments", "name", "logprobs", "tokens", "token_ids", "reasoning", "refusal", "x_groq", "detail",
    "code", "type", "role", "stop",
]  # fmt: skip
NUMBERS = st.integers(-1, 2**65) | st.floats() | st.just(10**400)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | st.sampled_from(FIELDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)
FRAMES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5) | st.builds(
    lambda choice, usage: {"choices": [choice], "usage": usage},
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5),
    VALUES,
)
SSE_PIECES = st.sampled_from(
    [b"data: ", b"data:", b"event: error\n", b": hi\n", b"\n", b"\r\n\r\n", b"[DONE]", b"\xff"]
)
BODIES = st.lists(
    st.binary(max_size=20) | SSE_PIECES | VALUES.map(lambda value: json.dumps(value).encode()), max_size=12
).map(b"".join)


def assert_sound(decoded: Decoded) -> None:
    """Everything in it can be stored: equal lengths, known words, UTF-8, JSON, counts that fit."""
    chunks = decoded.chunks
    columns = [getattr(chunks, name) for name in chunks.__slots__]
    assert {len(column) for column in columns} == {len(chunks.kind)}
    assert decoded.outcome in OUTCOMES
    assert set(chunks.kind) <= set(CHUNK_KINDS)
    kind = decoded.error_kind
    assert kind is None or kind in ERROR_KINDS or kind.startswith("http_")
    assert (kind is None) == (decoded.outcome == "ok")
    for words in (decoded.error_message, decoded.text, decoded.finish_reason, decoded.request_id):
        assert words is None or words.encode().decode() == words
    for object_ in (decoded.server_timings, decoded.ratelimit):
        assert object_ is None or json.loads(object_, parse_constant=pytest.fail) is not None
    counts = [decoded.prompt_tokens, decoded.output_tokens, decoded.reasoning_tokens, decoded.cached_tokens]
    assert all(count is None or 0 <= count < 2**63 for count in counts)
    assert all(count is None or 0 <= count < 2**31 for count in chunks.n_tokens)
    assert all(0 <= index < 2**15 for index in chunks.choice)


@given(st.sampled_from(HEADS), BODIES, st.sampled_from(["close", "rst", "hold"]), st.data())
def test_any_bytes_give_the_same_sound_facts_however_they_are_cut(
    head: bytes, body: bytes, after: str, data: st.DataObject
) -> None:
    if b"chunked" in head:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    answer = one_write(head + body, after)
    whole = facts(decode(play(answer)))
    assert_sound(decode(play(answer)))
    cuts = data.draw(st.lists(st.integers(0, len(answer.raw)), max_size=6).map(sorted))
    assert facts(decode(in_one_read(answer, cuts))) == whole


@given(st.lists(FRAMES, max_size=4), st.sampled_from(get_args(Ending)))
def test_any_json_in_a_stream_gives_sound_facts(frames: list[dict[str, Any]], ending: Ending) -> None:
    capture = sse_capture(*frames, ending=ending)
    assert_sound(decode(capture))
    first = FirstOutput()
    for read in capture.reads:
        first.feed(read.body)


@given(FRAMES)
def test_any_json_instead_of_a_stream_gives_sound_facts(frame: dict[str, Any]) -> None:
    assert_sound(decode(sse_capture(json.dumps(frame).encode(), content_type="application/json")))


@settings(max_examples=50)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_characters_in_text_survive(a: str, b: str) -> None:
    events = ({"choices": [{"text": a}]}, {"choices": [{"text": b, "finish_reason": "stop"}]})
    decoded = decode(sse_capture(*events))
    assert (decoded.text or "") == a + b
    assert decoded.output_chars == len(a + b)
    assert decoded.output_bytes == len((a + b).encode())


NASTY = {
    "deep list": b"[" * 100_000,
    "deep object": b'{"choices":' * 100_000,
    "deep error": b'{"error":' + b'{"error":' * 900 + b"1" + b"}" * 901,
    "deep error list": b'{"error":' + b"[" * 900 + b'"x"' + b"]" * 900 + b"}",
    "deep content": b'{"choices":[{"text":' + b"[" * 700 + b'"x"' + b"]" * 700 + b"}]}",
    "deep timings": b'{"choices":[],"timings":' + b"[" * 900 + b"]" * 900 + b"}",
    "number of 10,000 digits": b'{"choices":[],"timings":{"a":'
    + b"9" * 10_000
    + b'},"error":'
    + b"9" * 10_000
    + b"}",
    "infinity": b'{"choices":[],"timings":{"a":1e999,"b":NaN,"c":-Infinity},"error":NaN}',
    "half a surrogate": b'{"choices":[{"text":"\\ud800","finish_reason":"\\udc00"}],"timings":{"\\ud800":1}}',
    "nul": b'{"choices":[{"text":"\\u0000\x00"}],"error":"\\u0000"}',
    "same key twice": b'{"choices":[],"choices":[{"text":"a"}],"error":null,"error":"e"}',
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_json_gives_sound_facts_as_event_and_as_body(name: str) -> None:
    assert_sound(decode(sse_capture(b"data: " + NASTY[name] + b"\n\n")))
    assert_sound(decode(sse_capture(b"event: error\ndata: " + NASTY[name] + b"\n\n")))
    assert_sound(decode(sse_capture(NASTY[name], content_type="application/json")))
    assert_sound(decode(sse_capture(NASTY[name], status=500)))


def test_an_event_of_a_mebibyte_is_decoded_in_small_reads() -> None:
    event = b'data: {"choices":[{"text":"%s","finish_reason":"stop"}]}\n\n' % (b"z" * (1 << 20))
    raw = HEADS[1] + event
    answer = Script(tuple((i, raw[i : i + 1448]) for i in range(0, len(raw), 1448)), "close")
    decoded = decode(play(answer))
    assert (decoded.outcome, decoded.output_chars) == ("ok", 1 << 20)
