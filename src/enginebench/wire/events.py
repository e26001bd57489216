"""What one event of a stream is: generated output, an error, or one of the frames around them."""

from __future__ import annotations

import msgspec

from enginebench.model.record import ChunkKind
from enginebench.wire.frames import Choice, Frame, parse, usage_of
from enginebench.wire.sse import Event

PING_WORDS = frozenset({b"", b"null", b"ping", b"pong", b"keep-alive", b"keepalive", b"heartbeat"})
FAILED_REASONS = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons that mean the engine gave up: OpenRouter's; SGLang's and vLLM's; DeepSeek's."""


class Output(msgspec.Struct, frozen=True, gc=False):
    """Generated output of one event, all its choices together."""

    kind: ChunkKind
    choice: int
    """The first choice that has output of this kind."""
    text: str
    """Everything generated: reasoning, answer, names and arguments of tool calls."""


class Meaning(msgspec.Struct, frozen=True, gc=False):
    kind: ChunkKind
    frame: Frame | None = None
    """None for comments, `[DONE]`, and data that is no JSON object."""
    output: Output | None = None
    error: object | None = None
    """The provider's account of what went wrong, in the shape it came in."""
    is_malformed: bool = False
    """The data should have been a JSON object and is none; `error` is then its text."""


_PING = Meaning("ping")
_DONE = Meaning("done")


def read_event(event: Event) -> Meaning:
    """An event that carries output is of that output's kind, whatever else rides on it."""
    if event.is_comment:
        return _PING
    data = event.data
    name = event.event.strip().lower() if event.event is not None else None
    if len(data) < 16 and name != "error":
        word = data.strip().lower()
        if word == b"[done]":
            return _DONE
        if word in PING_WORDS:
            return _PING
    frame = parse(data)
    if frame is None:
        if name in _PING_NAMES:
            return _PING
        return Meaning("error", error=data.decode("utf-8", "replace"), is_malformed=name != "error")
    output = output_of(frame)
    error = error_of(frame)
    if error is None and name == "error":
        error = frame.message or data.decode("utf-8", "replace")
    if output is not None:
        return Meaning(output.kind, frame, output, error)
    if error is not None:
        return Meaning("error", frame, None, error)
    return Meaning(kind_without_output(frame), frame)


_PING_NAMES = frozenset({"ping", "heartbeat", "keepalive", "keep-alive"})


def answer_of(choice: Choice) -> str:
    """The visible answer in a choice; a refusal is one."""
    delta = choice.delta or choice.message
    if delta is None:
        return choice.text or ""
    return delta.content or delta.refusal or choice.text or ""


def output_of(frame: Frame) -> Output | None:
    """What an event generated; None if nothing: "", null, a role and an id are nothing.

    Of several kinds in one event, answer goes before tool call before reasoning, so that the
    first answer is never missed.
    """
    if frame.choices is None:
        return None
    output: Output | None = None
    for choice in frame.choices:
        answer = answer_of(choice)
        reasoning, tool = _beside_answer(choice)
        if answer or reasoning or tool:
            kind: ChunkKind = "content" if answer else "tool" if tool else "reasoning"
            text = reasoning + answer + tool
            if output is None:
                output = Output(kind, choice.index, text)
            elif _RANK[kind] < _RANK[output.kind]:
                output = Output(kind, choice.index, output.text + text)
            else:
                output = Output(output.kind, output.choice, output.text + text)
    return output


_RANK: dict[ChunkKind, int] = {"content": 0, "tool": 1, "reasoning": 2}


def _beside_answer(choice: Choice) -> tuple[str, str]:
    """Reasoning (servers that use both names send it twice) and tool calls (name, arguments)."""
    delta = choice.delta or choice.message
    if delta is None:
        return "", ""
    reasoning = delta.reasoning_content or delta.reasoning or ""
    if delta.tool_calls is None and delta.function_call is None:
        return reasoning, ""
    functions = [call.function for call in delta.tool_calls or ()]
    functions.append(delta.function_call)
    return reasoning, "".join((f.name or "") + (f.arguments or "") for f in functions if f is not None)


def finish_of(choice: Choice) -> str | None:
    """Why a choice ended. Some servers write "" or "null" while it has not."""
    reason = choice.finish_reason
    return None if not reason or reason == "null" else reason


def error_of(frame: Frame) -> object | None:
    """What went wrong, in the words and the shape of the provider; None if nothing did."""
    error: object | None = None
    if frame.error:
        error = frame.error
        if isinstance(error, str) and isinstance(frame.error_type, str):
            error = f"{error} ({frame.error_type})"
    elif frame.x_groq is not None and frame.x_groq.error:
        error = frame.x_groq.error
    elif frame.choices is None and frame.usage is None:
        error = _flat_error(frame)
    if error is None:
        for choice in frame.choices or ():
            if choice.error:
                return choice.error  # type: ignore[no-any-return]
            if choice.finish_reason in FAILED_REASONS:
                return f"finish_reason {choice.finish_reason}"
    return error


def _flat_error(frame: Frame) -> object | None:
    """Errors without choices: {"detail"}, {"message", "code"}, {"error": {}}, {"error_msg"}."""
    found: object | None = None
    kind = frame.type.lower() if isinstance(frame.type, str) else ""
    if frame.error is not None and frame.error is not False:
        found = frame.message or "error without a message"
    elif frame.message and (frame.code is not None or frame.object == "error" or "error" in kind):
        found = frame.message
    elif frame.error_msg or frame.detail:
        found = frame.error_msg or frame.detail
    return found


def kind_without_output(frame: Frame) -> ChunkKind:
    """The kind of an event that generated nothing and tells of no error."""
    if not frame.choices:
        if usage_of(frame) is not None:
            return "usage"
        if frame.choices is None:
            return "ping"
        return "filter" if frame.prompt_filter_results else "empty"
    if any(finish_of(choice) is not None for choice in frame.choices):
        return "finish"
    deltas = [choice.delta or choice.message for choice in frame.choices]
    if any(delta is not None and delta.role for delta in deltas):
        return "role"
    return "filter" if frame.choices[0].content_filter_results else "empty"
