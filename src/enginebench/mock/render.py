"""The bytes of every answer, in vLLM's shapes. Pure.

Field names and order follow what vLLM 0.32 sends: chat opens with a role chunk, the finish reason
rides on the last content chunk, usage comes in a chunk with no choices, then `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

FINGERPRINT = f"mock-{enginebench.__version__}"
_HOLE = b"\x00"
"""Stands for a word while a chunk is rendered: JSON never holds this byte raw."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """The HTTP chunks of one streamed answer, each one SSE event, ready to be written."""

    role: bytes | None
    words: tuple[bytes, ...]
    """Token i is `words[i % len(words)]`, but for the last token. As many as there are words, or
    tokens if they are fewer."""
    last: bytes
    usage: bytes | None
    done: bytes


def words(asked: Asked, first: int, n: int) -> Iterator[str]:
    """The generated words of tokens `first` to `first + n - 1`."""
    return (WORDS[(asked.text_start + i) % len(WORDS)] for i in range(first, first + n))


def text(asked: Asked) -> str:
    return "".join(words(asked, 0, asked.output_tokens))


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
    middle = {**top, "choices": [_stream_choice(asked, None)]}
    ending = {**top, "choices": [_stream_choice(asked, asked.finish_reason)]}
    [last] = _word_events(ending, words(asked, asked.output_tokens - 1, 1))
    return Shapes(
        role=role,
        words=tuple(_word_events(middle, words(asked, 0, min(asked.output_tokens, len(WORDS))))),
        last=last,
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


def _word_events(body: dict[str, Any], words: Iterable[str]) -> Iterator[bytes]:
    """One event per word, all but the word encoded once."""
    before, _, after = msgspec.json.encode(body).partition(_HOLE)
    for word in words:
        yield _chunk(b"data: %b%b%b\n\n" % (before, word.encode(), after))
