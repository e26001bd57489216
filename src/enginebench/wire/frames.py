"""The JSON of one event, or of one whole answer, of an OpenAI-compatible server.

Typed `msgspec` structs read ordinary events in one pass. Whatever does not fit them (a content
that is a list of parts, a count written as text, broken UTF-8) is read again without types, into
the same structs. Nothing that a server sends raises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

MAX_COUNT = 2**31 - 1
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Index = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct, gc=False):
    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    """The `delta` of a chat chunk, or the `message` of an answer that was not streamed."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None


class Mark(msgspec.Struct, gc=False):
    """A token of which only the existence counts."""


class Logprobs(msgspec.Struct, gc=False):
    content: list[Mark] | None = None
    """Chat, and llama.cpp's text completions."""
    refusal: list[Mark] | None = None
    tokens: list[str] | None = None
    """Text completions."""


class Choice(msgspec.Struct, gc=False):
    index: Index = 0
    delta: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    message: Delta | None = None
    token_ids: list[int] | None = None
    logprobs: Logprobs | None = None
    error: Any = None
    content_filter_results: Any = None


class Details(msgspec.Struct, gc=False):
    reasoning_tokens: Count | None = None
    cached_tokens: Count | None = None


class Usage(msgspec.Struct, gc=False):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    completion_tokens_details: Details | None = None
    prompt_tokens_details: Details | None = None
    reasoning_tokens: Count | None = None
    """SGLang has it here."""
    prompt_cache_hit_tokens: Count | None = None
    """DeepSeek's name of cached_tokens."""


class Groq(msgspec.Struct, gc=False):
    usage: Usage | None = None
    error: Any = None


class Frame(msgspec.Struct, gc=False):
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None
    error_type: Any = None
    object: Any = None
    type: Any = None
    code: Any = None
    message: Any = None
    detail: Any = None
    error_msg: Any = None
    timings: Any = None
    prompt_filter_results: Any = None
    x_groq: Groq | None = None


_decode = msgspec.json.Decoder(Frame).decode


def parse(data: bytes) -> Frame | None:
    """The JSON object in `data`; of a list, its first element if that is an error. None if there
    is no object."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _parse_loosely(data)


def usage_of(frame: Frame) -> Usage | None:
    """The last chunk of a Groq stream may have its usage under `x_groq` only."""
    if frame.usage is None and frame.x_groq is not None:
        return frame.x_groq.usage
    return frame.usage


def _parse_loosely(data: bytes) -> Frame | None:
    try:
        value = json.loads(data.decode("utf-8", "replace"), strict=False)
        if isinstance(value, list) and value and isinstance(value[0], dict) and "error" in value[0]:
            value = value[0]
        return _frame(value) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def _frame(value: Mapping[str, Any]) -> Frame:
    choices = value.get("choices")
    groq = _mapping(value.get("x_groq"))
    plain = {name: value.get(name) for name in _PLAIN}
    return Frame(
        choices=[_choice(_mapping(item)) for item in choices] if isinstance(choices, list) else None,
        usage=_usage(value.get("usage")),
        x_groq=Groq(_usage(groq.get("usage")), groq.get("error")),
        **plain,
    )


_PLAIN = tuple(name for name in Frame.__struct_fields__ if name not in {"choices", "usage", "x_groq"})


def _choice(value: Mapping[str, Any]) -> Choice:
    logprobs = _mapping(value.get("logprobs"))
    ids = value.get("token_ids")
    reason = value.get("finish_reason")
    index = _count(value.get("index"))
    return Choice(
        index=index if index is not None and index < 2**15 else 0,
        delta=_delta(value.get("delta")),
        text=text_of(value.get("text")) or None,
        finish_reason=text_of(_mapping(reason).get("type", reason)) or None,
        message=_delta(value.get("message")),
        token_ids=[0] * len(ids) if isinstance(ids, list) else None,
        logprobs=Logprobs(_marks(logprobs.get("content")), _marks(logprobs.get("refusal")), None),
        error=value.get("error"),
        content_filter_results=value.get("content_filter_results"),
    )


def _delta(value: object) -> Delta | None:
    if not isinstance(value, dict):
        return None
    calls = value.get("tool_calls")
    content = value.get("content")
    thinking = [part for part in content if _is_thinking(part)] if isinstance(content, list) else []
    answer = [part for part in content if not _is_thinking(part)] if isinstance(content, list) else content
    return Delta(
        role=text_of(value.get("role")) or None,
        content=text_of(answer),
        reasoning_content=text_of(value.get("reasoning_content")) or text_of(thinking),
        reasoning=text_of(value.get("reasoning")),
        refusal=text_of(value.get("refusal")),
        tool_calls=[ToolCall(_function(_mapping(call).get("function"))) for call in calls]
        if isinstance(calls, list)
        else None,
        function_call=_function(value.get("function_call")),
    )


def _is_thinking(part: object) -> bool:
    kind = _mapping(part).get("type")
    return isinstance(kind, str) and ("think" in kind or "reason" in kind)


def _function(value: object) -> Function | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return Function(text_of(value.get("name")), text_of(arguments))


def text_of(value: object) -> str:
    """Text in whatever wrapping: a string, a list of parts, a part `{"type", "text" | ...}`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(text_of(item) for item in value)
    if isinstance(value, dict):
        return next((text for key in _TEXT_KEYS if (text := text_of(value.get(key)))), "")
    return ""


_TEXT_KEYS = ("text", "content", "thinking", "reasoning", "summary", "refusal")


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    counts = {name: _count(value.get(name)) for name in _COUNTS}
    details = {name: _details(value.get(name)) for name in _DETAILS}
    return Usage(**counts, **details)  # type: ignore[arg-type]


_DETAILS = ("completion_tokens_details", "prompt_tokens_details")
_COUNTS = tuple(name for name in Usage.__struct_fields__ if name not in _DETAILS)


def _details(value: object) -> Details | None:
    if not isinstance(value, dict):
        return None
    return Details(*(_count(value.get(name)) for name in Details.__struct_fields__))


def _count(value: object) -> int | None:
    """A count of tokens written as 7, 7.0 or "7"; None for anything that cannot be one."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 17:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def _marks(value: object) -> list[Mark] | None:
    return [Mark()] * len(value) if isinstance(value, list) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
