from __future__ import annotations

import json
from typing import Any

import pytest

from enginebench.mock import render
from enginebench.mock.asked import Asked
from enginebench.model.request import EndpointKind


def asked(endpoint: EndpointKind = "chat", **changes: Any) -> Asked:
    values: dict[str, Any] = {
        "endpoint": endpoint, "stream": True, "include_usage": True, "prompt_tokens": 9,
        "output_tokens": 3, "finish_reason": "length", "text_start": 0,
    }  # fmt: skip
    return Asked(**{**values, **changes})


def event(chunk: bytes) -> Any:
    """The JSON in one HTTP chunk, its framing checked."""
    size, _, rest = chunk.partition(b"\r\n")
    data, end = rest[: int(size, 16)], rest[int(size, 16) :]
    assert end == b"\r\n"
    assert data.startswith(b"data: ")
    assert data.endswith(b"}\n\n")
    return json.loads(data[6:])


def shapes(asked: Asked, model: str = "tiny") -> render.Shapes:
    return render.stream_shapes(asked, "chatcmpl-1", 1_700_000_000, model)


def test_words_need_no_escaping_in_json() -> None:
    for word in render.WORDS:
        assert json.dumps(word, ensure_ascii=False) == f'"{word}"'


def test_a_chat_chunk_is_framed_exactly_and_holds_its_word() -> None:
    stream = shapes(asked(text_start=2))
    chunks = [stream.middle.fill(position) for position in range(len(render.WORDS))]
    assert [event(chunk)["choices"][0]["delta"]["content"] for chunk in chunks] == [
        *render.WORDS[2:],
        *render.WORDS[:2],
    ]
    assert event(chunks[0]) == {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "delta": {"content": render.WORDS[2]},
                "logprobs": None,
                "finish_reason": None,
                "token_ids": None,
            }
        ],
    }


def test_a_chat_stream_opens_with_the_role_and_closes_with_the_reason_on_its_last_word() -> None:
    chat = shapes(asked())
    assert chat.role is not None
    assert event(chat.role)["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    last = event(chat.last.fill(2))["choices"][0]
    assert (last["delta"], last["finish_reason"]) == ({"content": render.WORDS[2]}, "length")


def test_a_completion_stream_has_text_and_no_role() -> None:
    completion = shapes(asked("completions", finish_reason="stop"))
    assert completion.role is None
    body = event(completion.last.fill(2))
    assert body["object"] == "text_completion"
    assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == (render.WORDS[2], "stop")


def test_usage_has_no_choices_and_is_left_out_unless_asked() -> None:
    usage = shapes(asked()).usage
    assert usage is not None
    assert event(usage)["choices"] == []
    assert event(usage)["usage"] == {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    assert shapes(asked(include_usage=False)).usage is None


def test_the_end_is_done_and_the_last_chunk() -> None:
    assert shapes(asked()).done == b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def test_a_model_name_may_hold_anything() -> None:
    name = 'a "b" \\ \x00 é'
    assert event(shapes(asked(), name).middle.fill(0))["model"] == name


@pytest.mark.parametrize(
    ("endpoint", "kind"), [("chat", "chat.completion"), ("completions", "text_completion")]
)
def test_a_whole_answer_has_the_text_that_the_stream_would_have(endpoint: EndpointKind, kind: str) -> None:
    want = asked(endpoint, output_tokens=3, text_start=len(render.WORDS) - 1)
    body = json.loads(render.whole_answer(want, "id", 1, "tiny"))
    choice = body["choices"][0]
    text = choice["message"]["content"] if endpoint == "chat" else choice["text"]
    assert text == render.WORDS[-1] + render.WORDS[0] + render.WORDS[1]
    assert (body["object"], choice["finish_reason"]) == (kind, "length")
    assert body["usage"]["completion_tokens"] == 3
