"""Request body -> what the model has to do, or why it will not. Pure.

The mock has no tokenizer. A prompt has one token per word (16 letters, digits and underscores at
most), per run of ASCII signs, and per character of any other script. Each chat message adds 4 for
its template; a prompt given as token ids has as many as there are ids. The model never stops by
itself: it generates `max_tokens`, or a fixed length when none is asked.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from enginebench.mock.config import MAX_MODEL_LEN
from enginebench.model.request import EndpointKind

_TOKEN = re.compile(r"[A-Za-z0-9_]{1,16}|[!-/:-@\[-^`{-~]+|[^\s!-~]")
TOKENS_PER_MESSAGE = 4
CHAT_OUTPUT_TOKENS = 128
"""Length of a chat answer without a limit; it ends with finish reason `stop`."""
COMPLETION_OUTPUT_TOKENS = 16
"""vLLM's (and OpenAI's) default for /completions."""

FinishReason = Literal["length", "stop"]


@dataclass(frozen=True, slots=True)
class Asked:
    endpoint: EndpointKind
    stream: bool
    include_usage: bool
    prompt_tokens: int
    output_tokens: int
    finish_reason: FinishReason
    text_start: int
    """Where in the cycle of words the answer begins: equal prompts get equal answers."""


class Refused(Exception):
    """An answer with an error status. The names are those of the error object on the wire."""

    def __init__(self, status: int, message: str, kind: str, param: str | None) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.param = status, message, kind, param


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class _Part(msgspec.Struct):
    type: str
    text: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None


class _Common(msgspec.Struct, kw_only=True):
    """Fields of both endpoints; unknown ones are ignored, as vLLM does."""

    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    temperature: float | None = None
    ignore_eos: bool | None = None
    logprobs: bool | int | None = None


class _ChatBody(_Common):
    messages: list[_Message]
    max_completion_tokens: int | None = None


class _CompletionBody(_Common):
    prompt: str | list[str | int | list[int]]
    echo: bool | None = None


_CHAT = msgspec.json.Decoder(_ChatBody)
_COMPLETION = msgspec.json.Decoder(_CompletionBody)


def read_chat(body: bytes, model: str, seed: int) -> Asked:
    """A /chat/completions body. Raises Refused."""
    parsed = _decode(_CHAT, body)
    _check_common(parsed, model)
    if not parsed.messages:
        raise _bad("messages must not be empty.", "messages")
    texts = [_message_text(message) for message in parsed.messages]
    if parsed.max_completion_tokens is None:
        limit = _Limit("max_tokens", parsed.max_tokens, CHAT_OUTPUT_TOKENS, "stop")
    else:
        limit = _Limit("max_completion_tokens", parsed.max_completion_tokens, CHAT_OUTPUT_TOKENS, "stop")
    prompt_tokens = sum(map(_count_tokens, texts)) + TOKENS_PER_MESSAGE * len(texts)
    return _asked("chat", parsed, limit, _Prompt(prompt_tokens, "".join(texts), seed))


def read_completion(body: bytes, model: str, seed: int) -> Asked:
    """A /completions body. Raises Refused."""
    parsed = _decode(_COMPLETION, body)
    _check_common(parsed, model)
    if parsed.echo:
        raise _bad("The mock engine does not echo prompts.", "echo")
    prompt = _only_prompt(parsed.prompt)
    prompt_tokens = _count_tokens(prompt) if isinstance(prompt, str) else len(prompt)
    text = prompt if isinstance(prompt, str) else str(prompt)
    limit = _Limit("max_tokens", parsed.max_tokens, COMPLETION_OUTPUT_TOKENS, "length")
    return _asked("completions", parsed, limit, _Prompt(prompt_tokens, text, seed))


@dataclass(frozen=True, slots=True)
class _Limit:
    """How many tokens to generate: `asked` under the name the client used, or a default."""

    name: str
    asked: int | None
    default: int
    default_finish: FinishReason


@dataclass(frozen=True, slots=True)
class _Prompt:
    n_tokens: int
    text: str
    seed: int


def _asked(endpoint: EndpointKind, parsed: _Common, limit: _Limit, prompt: _Prompt) -> Asked:
    if prompt.n_tokens == 0:
        raise _bad("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    output_tokens = _output_tokens(limit, parsed.min_tokens or 0, prompt.n_tokens)
    options = parsed.stream_options
    return Asked(
        endpoint=endpoint,
        stream=bool(parsed.stream),
        include_usage=options is not None and bool(options.include_usage),
        prompt_tokens=prompt.n_tokens,
        output_tokens=output_tokens,
        finish_reason=limit.default_finish if limit.asked is None else "length",
        text_start=zlib.crc32(prompt.text.encode(), prompt.seed & 0xFFFFFFFF),
    )


def _output_tokens(limit: _Limit, min_tokens: int, prompt_tokens: int) -> int:
    name, asked = limit.name, limit.asked
    if asked is not None:
        if asked < 1:
            raise _bad(f"{name} must be at least 1, got {asked}.", name, asked)
        if min_tokens > asked:
            raise _bad(
                f"min_tokens must be less than or equal to {name}={asked}, got {min_tokens}.", "min_tokens"
            )
    n_tokens = max(limit.default, min_tokens) if asked is None else asked
    if prompt_tokens + n_tokens > MAX_MODEL_LEN:
        raise _bad(
            f"This model's maximum context length is {MAX_MODEL_LEN} tokens. However, you requested "
            f"{n_tokens} output tokens and your prompt contains {prompt_tokens} input tokens. "
            "Please reduce the length of the input prompt or the number of requested output tokens.",
            name,
            n_tokens,
        )
    return n_tokens


def _check_common(parsed: _Common, model: str) -> None:
    if parsed.model is not None and parsed.model != model:
        message = f"The model `{parsed.model}` does not exist. Valid aliases: {model}."
        raise Refused(404, message, "NotFoundError", "model")
    if parsed.n not in (None, 1):
        raise _bad("The mock engine gives one choice per request.", "n", parsed.n)
    if parsed.logprobs not in (None, False):
        raise _bad("The mock engine has no logprobs.", "logprobs")
    if parsed.stream_options is not None and not parsed.stream:
        raise _bad("Stream options can only be defined when `stream=True`.", "stream_options")
    if parsed.temperature is not None and parsed.temperature < 0:
        raise _bad(
            f"temperature must be non-negative, got {parsed.temperature}.", "temperature", parsed.temperature
        )


def _message_text(message: _Message) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = message.content or []
    if any(part.text is None for part in parts):
        raise _bad("The mock engine reads text parts only.", "messages")
    return "".join(part.text or "" for part in parts)


def _only_prompt(prompt: str | list[str | int | list[int]]) -> str | Sequence[int]:
    if isinstance(prompt, str):
        return prompt
    ids = [item for item in prompt if isinstance(item, int)]
    if len(ids) == len(prompt):
        return ids
    only = prompt[0]
    if len(prompt) > 1 or isinstance(only, int):
        raise _bad("The mock engine takes one prompt per request.", "prompt")
    return only


def _count_tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def _bad(message: str, param: str, value: object = None) -> Refused:
    suffix = f"parameter={param}" if value is None else f"parameter={param}, value={value}"
    return Refused(400, f"{message} ({suffix})", "BadRequestError", param)


_Body = TypeVar("_Body")


def _decode(decoder: msgspec.json.Decoder[_Body], body: bytes) -> _Body:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _schema_error("json_invalid", "body", f"JSON decode error: {error}") from error


def _invalid(problem: str) -> Refused:
    """msgspec's complaint, where vLLM puts pydantic's."""
    said, _, path = problem.partition(" - at ")
    where = "body" + path.strip("`").removeprefix("$")
    missing = re.search("missing required field `(.+)`", said)
    if missing:
        return _schema_error("missing", f"{where}.{missing[1]}", "Field required")
    return _schema_error("type_error", where, said)


def _schema_error(kind: str, where: str, problem: str) -> Refused:
    entry = {"type": kind, "loc": where, "msg": problem}
    return Refused(400, f"1 validation error:\n  {entry}", "Bad Request", where)
