"""The bytes of every answer, in vLLM's shapes. Pure.

Field names and order follow what vLLM 0.32 sends: chat opens with a role chunk, the finish reason
rides on the last content chunk, usage comes in a chunk with no choices, then `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

import enginebench
from enginebench.mock.asked import Asked, Refused

_TEXT = (
    " the| engine| reads| a| batch| of| prompts| and| emits| one| token| for| each| user| per| step|,|"
    " while| the| naïve| client| waits| at| its| café| table| counting| every| single| gap| between| words|."
)
WORDS: tuple[str, ...] = tuple(_TEXT.split("|"))
"""Generated text is this cycle, one word a token; two words are not ASCII, as real text is not."""

_WORDS_UTF8: tuple[bytes, ...] = tuple(word.encode() for word in WORDS)
_WORD_SIZES = frozenset(map(len, _WORDS_UTF8))

FINGERPRINT = f"mock-{enginebench.__version__}"
_HOLE = b"\x00"
"""Stands for a word while a chunk is rendered: JSON never holds this byte raw."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A chunk with a hole for the word; everything else is rendered once per request."""

    heads: Mapping[int, bytes]
    """By size of the word in bytes: the chunk-size line, and all that precedes the word."""
    tail: bytes
    text_start: int

    def fill(self, position: int) -> bytes:
        """The chunk of token `position`."""
        word = _WORDS_UTF8[(self.text_start + position) % len(_WORDS_UTF8)]
        return b"".join((self.heads[len(word)], word, self.tail))


@dataclass(frozen=True, slots=True)
class Shapes:
    """The HTTP chunks of one streamed answer, each one SSE event."""

    role: bytes | None
    middle: Slot
    last: Slot
    usage: bytes | None
    done: bytes


def text(asked: Asked) -> str:
    return "".join(WORDS[(asked.text_start + i) % len(WORDS)] for i in range(asked.output_tokens))


def stream_shapes(asked: Asked, request_id: str, created_s: int, model: str) -> Shapes:
    top = {"id": request_id, "object": _STREAM_OBJECT[asked.endpoint], "created": created_s, "model": model}
    role = usage = None
    if asked.endpoint == "chat":
        first = {
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        role = _event({**top, "choices": [first]})
    if asked.include_usage:
        usage = _event({**top, "choices": [], "usage": _usage(asked), "system_fingerprint": FINGERPRINT})
    return Shapes(
        role=role,
        middle=_slot({**top, "choices": [_stream_choice(asked, None)]}, asked.text_start),
        last=_slot({**top, "choices": [_stream_choice(asked, asked.finish_reason)]}, asked.text_start),
        usage=usage,
        done=_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n",
    )


def whole_answer(asked: Asked, request_id: str, created_s: int, model: str) -> bytes:
    """The JSON body of an answer that was not streamed."""
    choice: dict[str, Any] = {"index": 0}
    if asked.endpoint == "chat":
        choice["message"] = {"role": "assistant", "content": text(asked), "refusal": None}
    else:
        choice["text"] = text(asked)
    choice |= {"logprobs": None, "finish_reason": asked.finish_reason, "stop_reason": None}
    return msgspec.json.encode(
        {
            "id": request_id,
            "object": _WHOLE_OBJECT[asked.endpoint],
            "created": created_s,
            "model": model,
            "choices": [choice],
            "system_fingerprint": FINGERPRINT,
            "usage": _usage(asked),
        }
    )


def refusal(refused: Refused) -> bytes:
    """vLLM's error object; `code` repeats the HTTP status as a number."""
    return msgspec.json.encode(
        {
            "error": {
                "message": refused.message,
                "type": refused.kind,
                "param": refused.param,
                "code": refused.status,
            }
        }
    )


def detail(status: int) -> bytes:
    """What vLLM's web framework says for unknown paths and methods."""
    return msgspec.json.encode({"detail": HTTPStatus(status).phrase})


def models(model: str, created_s: int, max_model_len: int) -> bytes:
    card = {
        "id": model,
        "object": "model",
        "created": created_s,
        "owned_by": "enginebench",
        "root": model,
        "parent": None,
        "max_model_len": max_model_len,
    }
    return msgspec.json.encode({"object": "list", "data": [card]})


_STREAM_OBJECT = {"chat": "chat.completion.chunk", "completions": "text_completion"}
_WHOLE_OBJECT = {"chat": "chat.completion", "completions": "text_completion"}


def _stream_choice(asked: Asked, finish_reason: str | None) -> dict[str, Any]:
    hole = msgspec.Raw(b'"' + _HOLE + b'"')
    carried = {"delta": {"content": hole}} if asked.endpoint == "chat" else {"text": hole}
    choice = {"index": 0, **carried, "logprobs": None, "finish_reason": finish_reason}
    if finish_reason is not None or asked.endpoint == "completions":
        choice["stop_reason"] = None
    return {**choice, "token_ids": None}


def _usage(asked: Asked) -> dict[str, int]:
    return {
        "prompt_tokens": asked.prompt_tokens,
        "total_tokens": asked.prompt_tokens + asked.output_tokens,
        "completion_tokens": asked.output_tokens,
    }


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(body: dict[str, Any]) -> bytes:
    return _chunk(b"data: " + msgspec.json.encode(body) + b"\n\n")


def _slot(body: dict[str, Any], text_start: int) -> Slot:
    before, _, after = msgspec.json.encode(body).partition(_HOLE)
    before, after = b"data: " + before, after + b"\n\n"
    around = len(before) + len(after)
    heads = {size: b"%x\r\n%b" % (around + size, before) for size in _WORD_SIZES}
    return Slot(heads, after + b"\r\n", text_start)
