"""What the decoder makes of single situations; whole responses are in test_cases and test_captures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.wire.playback import SENT_NS, delta, sse_capture, text, usage

from enginebench.model.capture import Capture, Ending, Read
from enginebench.model.record import COALESCED_OVER_NS, Decoded
from enginebench.wire.decode import FirstOutput, decode

A, B = delta(content="a"), delta(content="b")
DONE = b"data: [DONE]\n\n"
ROLE = delta(role="assistant", content="")
STOP = delta(finish="stop")


def kinds(*events: object) -> list[str]:
    return list(decode(sse_capture(*events)).chunks.kind)


def call(name: str | None = None, arguments: str | None = None) -> dict[str, Any]:
    return delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}])


KINDS: dict[str, tuple[object, str]] = {
    "role with empty content": (ROLE, "role"),
    "role with null content": (delta(role="assistant", content=None), "role"),
    "role with content": (delta(role="assistant", content="a"), "content"),
    "content": (delta(content="a"), "content"),
    "one blank": (delta(content=" "), "content"),
    "one line end": (delta(content="\n"), "content"),
    "empty content": (delta(content=""), "empty"),
    "null content": (delta(content=None), "empty"),
    "no delta": ({"choices": [{"index": 0}]}, "empty"),
    "text": (text("a"), "content"),
    "empty text": (text(""), "empty"),
    "refusal": (delta(refusal="no"), "content"),
    "reasoning_content": (delta(reasoning_content="a"), "reasoning"),
    "reasoning": (delta(reasoning="a", content=None), "reasoning"),
    "reasoning and content": (delta(reasoning="a", content="b"), "content"),
    "tool name": (call("f", ""), "tool"),
    "tool arguments": (call(None, "{"), "tool"),
    "tool id only": (call(None, None), "empty"),
    "old function call": (delta(function_call={"name": "f", "arguments": ""}), "tool"),
    "tool and content": (delta(content="a", tool_calls=[{"function": {"name": "f"}}]), "content"),
    "finish": (STOP, "finish"),
    "finish with content": (delta(finish="length", content="a"), "content"),
    "finish with usage": (STOP | {"usage": {"completion_tokens": 1}}, "finish"),
    "finish not reached": (delta(finish=""), "empty"),
    "finish not reached, as text": (delta(finish="null"), "empty"),
    "usage": (usage(3), "usage"),
    "usage of groq": ({"choices": [], "x_groq": {"usage": {"completion_tokens": 3}}}, "usage"),
    "usage without choices": ({"usage": {"completion_tokens": 3}}, "usage"),
    "prompt filter": ({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}, "filter"),
    "content filter": ({"choices": [{"index": 0, "content_filter_results": {"hate": {}}}]}, "filter"),
    "no choices": ({"choices": []}, "empty"),
    "json ping": ({"type": "ping"}, "ping"),
    "named ping": (b"event: ping\ndata: anything at all here\n\n", "ping"),
    "ping in words": (b"data: keep-alive\n\n", "ping"),
    "null": (b"data: null\n\n", "ping"),
    "no data": (b"data:\n\n", "ping"),
    "comment": (b": OPENROUTER PROCESSING\n\n", "ping"),
    "done": (DONE, "done"),
    "error": ({"error": {"message": "m"}}, "error"),
    "error that rides on output": (delta(content="a") | {"error": {"message": "m"}}, "content"),
    "content as parts": (delta(content=[{"type": "text", "text": "a"}]), "content"),
    "thinking as parts": (
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]),
        "reasoning",
    ),
    "no parts": (delta(content=[]), "empty"),
    "arguments as an object": (delta(tool_calls=[{"function": {"arguments": {"a": 1}}}]), "tool"),
    "calls that are none": (delta(tool_calls=["x", None, {"function": 3}]), "empty"),
    "delta that is none": ({"choices": [{"index": None, "delta": "a"}, 7]}, "empty"),
}


@pytest.mark.parametrize("name", KINDS)
def test_kind_of_an_event(name: str) -> None:
    event, kind = KINDS[name]
    assert kinds(event) == [kind]


@pytest.mark.parametrize("name", KINDS)
def test_only_output_ends_the_wait_for_the_first_output(name: str) -> None:
    event, kind = KINDS[name]
    [read] = sse_capture(event).reads
    first = FirstOutput()
    assert not any(first.feed(read.body[i : i + 1]) for i in range(len(read.body) - 1))
    assert first.feed(read.body[-1:]) == (kind in {"content", "reasoning", "tool"})


def test_after_its_first_output_a_stream_has_output_whatever_comes() -> None:
    first = FirstOutput()
    assert first.feed(b"data: " + json.dumps(delta(content="a")).encode() + b"\n\n")
    assert first.feed(b"")
    assert first.feed(b"data: {")


@pytest.mark.parametrize("body", [b'{"choices":[{"message":{"content":"a"}}]}\n\n', b"<html>\n\n", b"a\n\n"])
def test_a_body_that_is_no_stream_has_no_first_output(body: bytes) -> None:
    assert not FirstOutput().feed(body)


def test_an_event_with_several_choices_is_one_chunk_of_its_most_telling_output() -> None:
    both = {
        "choices": [
            {"index": 0, "delta": {"reasoning": "hm"}},
            {"index": 1, "delta": {"content": "yes"}},
            {"index": 2, "delta": {}},
        ]
    }
    chunks = decode(sse_capture(both)).chunks
    assert (chunks.kind, chunks.choice, chunks.n_chars) == (["content"], [1], [5])


def test_text_is_the_answer_of_choice_0_and_output_is_everything() -> None:
    decoded = decode(
        sse_capture(
            delta(reasoning="h\u00fc"),
            delta(content="\u5317a"),
            delta(1, content="other"),
            call("f", "{}"),
            delta(content="!"),
        )
    )
    assert decoded.text == "\u5317a!"
    assert decoded.chunks.n_chars == [2, 2, 5, 3, 1]
    assert decoded.output_chars == 13
    assert decoded.output_bytes == len("h\u00fc\u5317aotherf{}!".encode())


def test_halves_of_one_character_in_two_chunks_are_joined() -> None:
    halves = (b'{"choices":[{"text":"\\ud83d"}]}', b'{"choices":[{"text":"\\ude00"}]}')
    decoded = decode(sse_capture(*(b"data: " + half + b"\n\n" for half in halves)))
    assert decoded.text == "\U0001f600"


def test_control_characters_that_json_forbids_are_text() -> None:
    decoded = decode(sse_capture(b'data: {"choices":[{"text":"a\tb\x00"}]}\n\n', text("c", finish="stop")))
    assert (decoded.text, decoded.outcome) == ("a\tb\x00c", "ok")


def test_broken_utf8_is_replaced_and_nothing_is_lost() -> None:
    decoded = decode(sse_capture(b'data: {"choices":[{"text":"a\xff\xe5b"}]}\n\n', text("c", finish="stop")))
    assert (decoded.text, decoded.outcome) == ("a\ufffd\ufffdbc", "ok")


# Outcomes


OK_STREAM = (ROLE, delta(content="a"), STOP)

OUTCOMES: dict[str, tuple[Capture, str, str | None]] = {
    "finished": (sse_capture(*OK_STREAM, DONE), "ok", None),
    "finished without [DONE]": (sse_capture(*OK_STREAM), "ok", None),
    "[DONE] without finish": (
        sse_capture(ROLE, delta(content="a"), DONE),
        "truncated",
        "truncated_clean_eof",
    ),
    "one choice of two finished": (
        sse_capture(delta(content="a"), delta(1, content="b"), STOP, DONE),
        "truncated",
        "truncated_clean_eof",
    ),
    "finished, then reset": (sse_capture(*OK_STREAM, DONE, ending="reset"), "truncated", "connection_reset"),
    "finished, then closed": (sse_capture(*OK_STREAM, ending="closed"), "truncated", "connection_closed"),
    "closed in the middle": (
        sse_capture(delta(content="a"), b'data: {"choices":[{"del', ending="closed"),
        "truncated",
        "connection_closed",
    ),
    "whole body that ends inside an event": (
        sse_capture(delta(content="a"), b'data: {"choices":[{"del'),
        "truncated",
        "truncated_clean_eof",
    ),
    "closed inside the first event": (
        sse_capture(b'data: {"choices":[{"del', ending="closed"),
        "error",
        "connection_closed",
    ),
    "stream that opens with an unknown field": (sse_capture(b"x-field: 1\n", *OK_STREAM), "ok", None),
    "last event without its blank line": (
        sse_capture(delta(content="a"), b'data: {"choices":[{"finish_reason":"stop"}]}\n'),
        "ok",
        None,
    ),
    "nothing but a finish": (sse_capture(ROLE, STOP, DONE), "empty", "no_output"),
    "nothing but [DONE]": (sse_capture(DONE), "empty", "no_output"),
    "no body": (sse_capture(), "empty", "no_output"),
    "nothing but a role": (sse_capture(ROLE), "error", "truncated_clean_eof"),
    "role, then closed": (sse_capture(ROLE, ending="closed"), "error", "connection_closed"),
    "no first output": (sse_capture(ROLE, ending="first_token_timeout"), "timeout", "first_token_timeout"),
    "no output in all the time": (sse_capture(b":\n\n", ending="total_timeout"), "timeout", "total_timeout"),
    "silence after output": (
        sse_capture(delta(content="a"), ending="idle_timeout"),
        "truncated",
        "idle_timeout",
    ),
    "output without end": (
        sse_capture(delta(content="a"), ending="total_timeout"),
        "truncated",
        "total_timeout",
    ),
    "we left": (sse_capture(delta(content="a"), ending="cancelled"), "cancelled", "cancelled"),
    "the run died": (sse_capture(delta(content="a"), ending="interrupted"), "cancelled", "interrupted"),
    "error, then we left": (sse_capture({"error": "e"}, ending="cancelled"), "error", "stream_error"),
    "not http": (sse_capture(delta(content="a"), ending="bad_http"), "error", "bad_http"),
    "moved": (sse_capture(status=302), "error", "http_302"),
    "too many requests": (sse_capture({"error": "e"}, status=429), "rejected", "http_429"),
    "overloaded": (sse_capture(status=503, ending="reset"), "rejected", "http_503"),
    "bad request": (sse_capture(b'{"error":"e"}', status=400), "error", "http_400"),
    "error after the finish": (sse_capture(*OK_STREAM, {"error": "e"}, DONE), "error", "stream_error"),
    "event that is not json": (sse_capture(*OK_STREAM, b"data: {oops}\n\n"), "error", "malformed_event"),
    "event that is a list": (sse_capture(b"data: [1, 2, 3, 4, 5, 6, 7]\n\n"), "error", "malformed_event"),
    "created": (sse_capture(*OK_STREAM, status=201), "ok", None),
    "stream named as text": (sse_capture(*OK_STREAM, content_type="text/plain"), "ok", None),
    "stream named as json": (sse_capture(*OK_STREAM, content_type="application/json"), "ok", None),
    "finish reason error": (sse_capture(delta(content="a"), delta(finish="error")), "error", "stream_error"),
    "finish reason abort": (sse_capture(delta(content="a"), delta(finish="abort")), "error", "stream_error"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome_of(name: str) -> None:
    capture, outcome, error_kind = OUTCOMES[name]
    decoded = decode(capture)
    assert (decoded.outcome, decoded.error_kind) == (outcome, error_kind)


@pytest.mark.parametrize("ending", ["connect_failed", "send_failed", "client_error", "bad_http"])
def test_requests_that_got_no_response_are_errors_with_the_reason(ending: Ending) -> None:
    capture = Capture(0, "measure", 0, 0, ending=ending, ending_detail="Connection refused")
    decoded = decode(capture)
    assert (decoded.outcome, decoded.error_kind) == ("error", ending)
    assert decoded.error_message == "Connection refused"
    assert decoded.chunks.kind == []


@pytest.mark.parametrize(
    ("ending", "outcome", "kind"),
    [
        ("closed", "error", "connection_closed"),
        ("reset", "error", "connection_reset"),
        ("first_token_timeout", "timeout", "first_token_timeout"),
        ("cancelled", "cancelled", "cancelled"),
    ],
)
def test_endings_before_any_status(ending: Ending, outcome: str, kind: str) -> None:
    decoded = decode(Capture(0, "measure", 0, 0, ending=ending))
    assert (decoded.outcome, decoded.error_kind) == (outcome, kind)


# Errors in every shape


ERRORS: dict[str, tuple[bytes, str]] = {
    "object": (b'{"error":{"message":"engine died","code":500}}', "engine died"),
    "string": (b'{"error":"engine died"}', "engine died"),
    "string with a type": (b'{"error":"busy","error_type":"overloaded"}', "busy (overloaded)"),
    "flat with code": (b'{"message":"engine died","code":500,"type":"x"}', "engine died"),
    "flat object error": (b'{"object":"error","message":"engine died"}', "engine died"),
    "flat type error": (b'{"type":"server_error","message":"engine died"}', "engine died"),
    "detail": (b'{"detail":"Not Found"}', "Not Found"),
    "detail of fields": (b'{"detail":[{"loc":["a"],"msg":"x"},{"msg":"y"}]}', "x; y"),
    "baidu": (b'{"error_code":336,"error_msg":"no quota"}', "no quota"),
    "nested": (b'{"error":{"error":{"message":"deep"}}}', "deep"),
    "without words": (b'{"error":{"code":5}}', '{"code": 5}'),
    "empty": (b'{"error":{}}', "error without a message"),
    "list": (b'[{"error":{"code":429,"message":"quota"}}]', "quota"),
    "groq": (b'{"choices":[],"x_groq":{"error":"cut off"}}', "cut off"),
    "in a choice": (b'{"choices":[{"index":0,"error":{"message":"gone"},"delta":{}}]}', "gone"),
    "not in utf-8": (b'{"error":"caf\xe9"}', "caf\ufffd"),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", ""])
def test_error_bodies_instead_of_a_stream_keep_the_words_of_the_provider(
    name: str, content_type: str
) -> None:
    body, words = ERRORS[name]
    decoded = decode(sse_capture(body, content_type=content_type))
    assert (decoded.outcome, decoded.error_kind, decoded.error_message) == ("error", "in_band_error", words)
    assert decoded.chunks.kind == ["error"]
    refused = decode(sse_capture(body, content_type=content_type, status=400))
    assert (refused.error_kind, refused.error_message) == ("http_400", words)


@pytest.mark.parametrize("name", ERRORS)
def test_error_events_in_a_stream_keep_the_words_of_the_provider(name: str) -> None:
    body, words = ERRORS[name]
    decoded = decode(sse_capture(delta(content="a"), b"data: " + body + b"\n\n", DONE))
    assert (decoded.outcome, decoded.error_kind, decoded.error_message) == ("error", "stream_error", words)
    assert decoded.chunks.kind == ["content", "error", "done"]


@pytest.mark.parametrize("body", [b"engine died", b'{"message":"engine died"}', b'"engine died"'])
def test_an_event_named_error_is_an_error_whatever_its_data(body: bytes) -> None:
    decoded = decode(sse_capture(b"event: error\ndata: " + body + b"\n\n", DONE))
    assert (decoded.outcome, decoded.error_kind) == ("error", "stream_error")
    assert "engine died" in (decoded.error_message or "")
    assert decoded.chunks.kind == ["error", "done"]


@pytest.mark.parametrize(
    "body", [b"<html>\n<title>502</title>", b"upstream down", b"[1]", b'"a"', b"{oops}", b"7"]
)
@pytest.mark.parametrize("content_type", ["text/html", "text/event-stream", "application/json"])
def test_bodies_that_are_neither_stream_nor_completion_are_errors(body: bytes, content_type: str) -> None:
    decoded = decode(sse_capture(body, content_type=content_type))
    assert (decoded.outcome, decoded.error_kind) == ("error", "unexpected_body")
    assert decoded.error_message == body.decode().replace("\n", " ")


def test_json_that_is_no_completion_is_an_error() -> None:
    decoded = decode(sse_capture(b'{"object":"list","data":[]}', content_type="application/json"))
    assert (decoded.outcome, decoded.error_kind) == ("error", "unexpected_body")


@pytest.mark.parametrize(("coding", "outcome"), [("gzip", "error"), ("br", "error"), ("identity", "ok")])
def test_a_compressed_body_is_an_error_that_says_so(coding: str, outcome: str) -> None:
    capture = sse_capture(*OK_STREAM)
    capture.headers.append(("content-encoding", coding))
    decoded = decode(capture)
    assert decoded.outcome == outcome
    assert (coding in (decoded.error_message or "")) == (outcome == "error")


def test_the_first_error_is_the_one_that_is_told() -> None:
    decoded = decode(sse_capture({"error": "first"}, {"error": "second"}))
    assert decoded.error_message == "first"
    assert decoded.chunks.kind == ["error", "error"]


# Answers that were not streamed


def test_a_complete_answer_is_one_chunk_timed_by_its_last_byte() -> None:
    answer = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    }
    raw = json.dumps(answer).encode()
    capture = sse_capture(b"\n\n" + raw[:20], raw[20:50], raw[50:], content_type="application/json")
    decoded = decode(capture)
    assert (decoded.outcome, decoded.text, decoded.output_tokens) == ("ok", "ab", 2)
    assert (decoded.chunks.kind, decoded.chunks.n_bytes) == (["content"], [len(raw)])
    assert decoded.chunks.arrived_ns == [capture.reads[2].arrived_ns]
    assert decoded.token_source == "usage"


def test_a_complete_answer_without_a_finish_reason_is_good_and_an_unfinished_body_is_not() -> None:
    body = b'{"choices":[{"text":"ab"}]}'
    assert decode(sse_capture(body, content_type="application/json")).outcome == "ok"
    closed = decode(sse_capture(body, content_type="application/json", ending="closed"))
    assert (closed.outcome, closed.error_kind) == ("truncated", "connection_closed")
    half = decode(sse_capture(body[:9], content_type="application/json", ending="closed"))
    assert (half.outcome, half.error_kind) == ("error", "connection_closed")


# Times


def read(arrived_ns: int | None, read_ns: int, quiet_ns: int, *events: object) -> Read:
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return Read(arrived_ns, read_ns, quiet_ns, body)


def with_reads(*reads: Read) -> Decoded:
    capture = sse_capture()
    capture.reads = list(reads)
    return decode(capture)


LONG, SHORT = COALESCED_OVER_NS + 1, COALESCED_OVER_NS

COALESCED: dict[str, tuple[list[Read], list[bool]]] = {
    "two outputs after a long silence": ([read(LONG, LONG + 5, 0, A, B)], [True, False]),
    "three outputs": ([read(LONG, LONG + 5, 0, A, B, A)], [True, True, False]),
    "two outputs after a short silence": ([read(SHORT, LONG + 5, 0, A, B)], [False, False]),
    "no stamp": ([read(None, LONG, 0, A, B)], [False, False]),
    "role and first output": ([read(LONG, LONG, 0, ROLE, A)], [False, False]),
    "output, finish, usage": ([read(LONG, LONG, 0, A, STOP, usage(1))], [True, False, False]),
    "frames without output": ([read(LONG, LONG, 0, STOP, usage(1), {"choices": []})], [False] * 3),
    "frames between two outputs": (
        [read(LONG, LONG, 0, ROLE, A, ROLE, B, STOP)],
        [False, True, False, True, False],
    ),
    "two reads": ([read(LONG, LONG, 0, A), read(2 * LONG, 2 * LONG, LONG, B)], [False, False]),
    "two parts of one read": ([read(LONG, LONG, 0, A), read(LONG, LONG, 0, B)], [True, False]),
    "the later of two reads": (
        [read(10, 20, 0, A, B), read(LONG + 20, LONG + 30, 19, A, B)],
        [False, False, True, False],
    ),
}


@pytest.mark.parametrize("name", COALESCED)
def test_only_an_output_whose_moment_is_unknown_is_coalesced(name: str) -> None:
    reads, flags = COALESCED[name]
    assert with_reads(*reads).chunks.coalesced == flags


@pytest.mark.parametrize(("done_ns", "flags"), [(LONG, [True]), (LONG + 9, [False]), (None, [False])])
def test_the_end_of_the_body_in_the_read_of_the_last_output_hides_its_moment(
    done_ns: int | None, flags: list[bool]
) -> None:
    capture = sse_capture()
    capture.reads, capture.done_ns = [read(LONG, LONG + 5, 0, A)], done_ns
    assert decode(capture).chunks.coalesced == flags


def test_an_event_has_the_times_of_the_part_that_completes_it() -> None:
    whole = read(0, 0, 0, A).body
    decoded = with_reads(
        Read(10, 11, 0, whole[:5]), Read(20, 21, 11, whole[5:-1]), Read(30, 31, 21, whole[-1:] + whole)
    )
    assert decoded.chunks.arrived_ns == [30, 30]
    assert decoded.chunks.read_ns == [31, 31]


def test_an_event_without_its_blank_line_has_the_times_of_the_last_read() -> None:
    decoded = with_reads(Read(10, 11, 0, b"data: [DO"), Read(20, 21, 11, b"NE]"))
    assert (decoded.chunks.kind, decoded.chunks.arrived_ns) == (["done"], [20])


# What stands around the stream


def test_rate_limits_request_id_and_timings_are_kept() -> None:
    capture = sse_capture(A, STOP | {"timings": {"prompt_ms": 1.5, "cache_n": 0}})
    capture.headers += [
        ("x-request-id", "r-1"),
        ("retry-after", "2"),
        ("x-ratelimit-remaining-tokens", "99"),
        ("server", "x"),
    ]
    decoded = decode(capture)
    assert decoded.request_id == "r-1"
    assert json.loads(decoded.ratelimit or "") == {"retry-after": "2", "x-ratelimit-remaining-tokens": "99"}
    assert json.loads(decoded.server_timings or "") == {"prompt_ms": 1.5, "cache_n": 0}


def test_what_was_not_sent_is_none() -> None:
    decoded = decode(sse_capture(A, STOP))
    assert decoded.request_id is decoded.ratelimit is decoded.server_timings is decoded.error_message is None
    assert decoded.output_tokens is decoded.prompt_tokens is decoded.cached_tokens is None
    assert decode(sse_capture(ROLE)).text is None


def test_times_are_those_of_the_reads() -> None:
    decoded = decode(sse_capture(ROLE, A))
    assert decoded.chunks.arrived_ns == [SENT_NS + 10_000_000, SENT_NS + 20_000_000]
