"""Responses captured from vLLM, llama.cpp and transformers serve, against a plain reading of them."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from tests.wire.playback import TESTS, bytewise, facts, one_write, play

from enginebench.model.record import OUTPUT_KINDS, Decoded
from enginebench.wire.decode import decode

FOLDER = TESTS / "captures"
NAMES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.raw"))

SILENT = {
    f"transformers-serve/{name}" for name in ("chat_err_too_long", "comp_err_too_long", "comp_stream_echo")
}
"""Headers, at most a role frame, then nothing until the client left."""
LEFT_IN_THE_MIDDLE = {
    f"{engine}/{endpoint}_err_max_tokens_huge"
    for engine in ("llamacpp", "transformers-serve")
    for endpoint in ("chat", "comp")
}
ERROR_EVENTS = {
    "transformers-serve/chat_err_max_tokens_neg",
    "transformers-serve/chat_err_max_tokens_zero",
    "transformers-serve/comp_empty_prompt",
    "transformers-serve/comp_err_max_tokens_neg",
    "transformers-serve/comp_err_max_tokens_zero",
}
USAGE_PER_CHOICE = {"llamacpp/chat_stream_n2", "llamacpp/comp_stream_n2", "llamacpp/comp_two_prompts"}


def plain_reading(raw: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Status and JSON objects, read in the simplest way that works on these files."""
    head, _, body = raw.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    if b"transfer-encoding: chunked" not in head.lower():
        return status, [json.loads(body)] if body.startswith(b"{") else []
    whole = b""
    while body and (size := int(body.partition(b"\r\n")[0], 16)):
        _, _, body = body.partition(b"\r\n")
        whole, body = whole + body[:size], body[size + 2 :]
    pieces = [
        event for event in whole.split(b"\n\n") if event.startswith(b"data: {") and event.endswith(b"}")
    ]
    return status, [json.loads(piece[6:]) for piece in pieces]


def wanted_outcome(name: str, status: int) -> tuple[str, str | None]:
    if status >= 400:
        return "error", f"http_{status}"
    if name in SILENT:
        return "timeout", "first_token_timeout"
    if name in LEFT_IN_THE_MIDDLE:
        return "truncated", "idle_timeout"
    if name in ERROR_EVENTS:
        return "error", "stream_error"
    if name == "transformers-serve/comp_midstream_killed":
        return "truncated", "connection_closed"
    if name == "llamacpp/comp_empty_prompt":
        return "empty", "no_output"
    return "ok", None


def reading(name: str) -> tuple[Decoded, int, list[dict[str, Any]]]:
    raw = (FOLDER / f"{name}.raw").read_bytes()
    after = "hold" if name in SILENT | LEFT_IN_THE_MIDDLE else "close"
    return decode(play(one_write(raw, after))), *plain_reading(raw)


def choices_of(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [choice for item in objects for choice in item.get("choices", ())]


def generated(choice: dict[str, Any]) -> str:
    said = choice.get("delta") or choice.get("message") or {}
    return (said.get("reasoning") or "") + (said.get("content") or choice.get("text") or "")


def test_all_three_engines_are_there() -> None:
    assert {name.split("/")[0] for name in NAMES} == {"llamacpp", "transformers-serve", "vllm"}
    assert set(NAMES) >= SILENT | LEFT_IN_THE_MIDDLE | ERROR_EVENTS | USAGE_PER_CHOICE


@pytest.mark.parametrize("name", NAMES)
def test_outcome_tokens_and_text_are_those_of_a_plain_reading(name: str) -> None:
    decoded, status, objects = reading(name)
    assert (decoded.outcome, decoded.error_kind) == wanted_outcome(name, status)
    assert bool(decoded.error_message) == (decoded.outcome == "error")

    usages = [item["usage"] for item in objects if item.get("usage")]
    if usages:
        counted = usages if name in USAGE_PER_CHOICE else usages[-1:]
        assert decoded.output_tokens == sum(usage["completion_tokens"] for usage in counted)
        assert decoded.prompt_tokens == usages[-1]["prompt_tokens"]
        assert decoded.token_source in {"usage", "continuous_usage"}
    elif "logprobs" not in name:
        assert (decoded.output_tokens, decoded.token_source) == (None, "none")

    choices = choices_of(objects)
    assert decoded.output_chars == sum(len(generated(choice)) for choice in choices)
    n_outputs = sum(bool(generated(choice)) for choice in choices)
    assert sum(kind in OUTPUT_KINDS for kind in decoded.chunks.kind) == n_outputs
    answers = [generated(c) for c in choices if c["index"] == 0 and not c.get("message", {}).get("reasoning")]
    assert (decoded.text or "") == "".join(answers)
    reasons = {choice["index"]: choice["finish_reason"] for choice in choices if choice.get("finish_reason")}
    assert decoded.finish_reason == reasons.get(0)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("stream_logprobs")])
def test_logprobs_count_the_tokens_of_each_chunk(name: str) -> None:
    decoded, _, _ = reading(name)
    counts = [
        n
        for n, kind in zip(decoded.chunks.n_tokens, decoded.chunks.kind, strict=True)
        if kind in OUTPUT_KINDS
    ]
    # llama.cpp's text completions send usage unasked; the chunks are counted by logprobs all the same.
    assert decoded.token_source == ("usage" if name == "llamacpp/comp_stream_logprobs" else "logprobs")
    assert decoded.output_tokens == 12
    assert sum(n or 0 for n in counts) == 12
    assert None not in counts


@pytest.mark.parametrize("endpoint", ["chat", "comp"])
def test_continuous_usage_of_vllm_counts_the_tokens_of_each_chunk(endpoint: str) -> None:
    decoded, _, _ = reading(f"vllm/{endpoint}_stream_usage_continuous")
    counts = [n for n in decoded.chunks.n_tokens if n is not None]
    assert (decoded.token_source, decoded.output_tokens) == ("continuous_usage", 12)
    assert sum(counts) == 12


def test_llamacpp_timings_and_cached_tokens_are_kept() -> None:
    decoded, _, objects = reading("llamacpp/chat_stream_usage")
    assert json.loads(decoded.server_timings or "") == objects[-1]["timings"]
    assert decoded.cached_tokens == 16


def test_role_and_first_token_in_one_http_chunk_are_two_chunks() -> None:
    decoded, _, _ = reading("llamacpp/chat_stream_usage")
    assert decoded.chunks.kind[:3] == ["role", "content", "content"]
    assert decoded.chunks.kind[-3:] == ["finish", "usage", "done"]


def test_a_reasoning_answer_that_was_not_streamed_is_one_chunk() -> None:
    decoded, _, _ = reading("vllm/chat_nonstream_reasoning_parser")
    assert decoded.chunks.kind == ["reasoning"]
    assert (decoded.text, decoded.output_tokens, decoded.reasoning_tokens) == (None, 10, 0)
    assert decoded.finish_reason == "length"


def test_request_ids_are_kept() -> None:
    decoded, _, _ = reading("transformers-serve/chat_stream")
    assert re.fullmatch(r"[0-9a-f-]{36}", decoded.request_id or "")


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_is_decoded_alike_whole_and_cut(name: str) -> None:
    answer = one_write((FOLDER / f"{name}.raw").read_bytes())
    whole = facts(decode(play(answer)))
    assert facts(decode(bytewise(answer))) == whole
    cuts = random.Random(name).sample(range(1, len(answer.raw)), 15)
    for i in cuts:
        assert facts(decode(play(answer, [i]))) == whole, i
    assert facts(decode(play(answer, sorted(cuts)))) == whole
