from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginebench.mock.asked import Asked, Refused, read_chat, read_completion
from enginebench.mock.config import MAX_MODEL_LEN

USER = [{"role": "user", "content": "12345678"}]


def chat(**fields: Any) -> Asked:
    return read_chat(json.dumps({"messages": USER, **fields}).encode(), "tiny", 0)


def completion(**fields: Any) -> Asked:
    return read_completion(json.dumps({"prompt": "12345678", **fields}).encode(), "tiny", 0)


def refused(body: bytes, read: Any = read_chat) -> Refused:
    with pytest.raises(Refused) as caught:
        read(body, "tiny", 0)
    return caught.value


@pytest.mark.parametrize(
    ("content", "n_tokens"),
    [
        ("", 4),
        ("word", 5),
        ("two words", 6),
        ("a_name1 != 20", 7),
        ("w" * 17, 6),
        ("北京。", 7),
        ([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}], 6),
        (None, 4),
    ],
)
def test_a_chat_message_has_a_token_per_word_and_four_for_its_template(content: Any, n_tokens: int) -> None:
    assert chat(messages=[{"role": "user", "content": content}]).prompt_tokens == n_tokens


def test_chat_messages_are_counted_one_by_one() -> None:
    assert chat(messages=[{"role": "system", "content": "1"}, *USER]).prompt_tokens == (1 + 4) + (1 + 4)


@pytest.mark.parametrize(
    ("prompt", "n_tokens"),
    [("one two", 2), ("1", 1), (["one two"], 2), ([11, 12, 13], 3), ([[11, 12, 13]], 3)],
)
def test_a_completion_prompt_is_text_or_token_ids(prompt: Any, n_tokens: int) -> None:
    assert completion(prompt=prompt).prompt_tokens == n_tokens


@pytest.mark.parametrize(
    ("fields", "output_tokens", "finish_reason"),
    [
        ({}, 128, "stop"),
        ({"max_tokens": 5}, 5, "length"),
        ({"max_tokens": None}, 128, "stop"),
        ({"max_completion_tokens": 7}, 7, "length"),
        ({"max_completion_tokens": 7, "max_tokens": 9}, 7, "length"),
        ({"min_tokens": 300}, 300, "stop"),
        ({"max_tokens": 5, "min_tokens": 5, "ignore_eos": True}, 5, "length"),
    ],
)
def test_a_chat_answer_is_as_long_as_asked(
    fields: dict[str, Any], output_tokens: int, finish_reason: str
) -> None:
    asked = chat(**fields)
    assert (asked.output_tokens, asked.finish_reason) == (output_tokens, finish_reason)


def test_a_completion_without_a_limit_has_sixteen_tokens() -> None:
    assert (completion().output_tokens, completion().finish_reason) == (16, "length")


@pytest.mark.parametrize(
    ("fields", "stream", "include_usage"),
    [
        ({}, False, False),
        ({"stream": True}, True, False),
        ({"stream": True, "stream_options": None}, True, False),
        ({"stream": True, "stream_options": {}}, True, False),
        ({"stream": True, "stream_options": {"include_usage": True}}, True, True),
    ],
)
def test_usage_in_a_stream_only_when_asked(fields: dict[str, Any], stream: bool, include_usage: bool) -> None:
    asked = chat(**fields)
    assert (asked.stream, asked.include_usage) == (stream, include_usage)


def test_unknown_fields_are_ignored() -> None:
    assert chat(top_k=5, cache_prompt=False, stop=["x"]) == chat()


def test_equal_prompts_begin_with_the_same_word_and_the_seed_changes_it() -> None:
    body = json.dumps({"messages": USER}).encode()
    starts = {read_chat(body, "tiny", seed).text_start for seed in range(5)}
    assert len(starts) == 5
    assert read_chat(body, "tiny", 3) == read_chat(body, "tiny", 3)
    assert chat().text_start != chat(messages=[{"role": "user", "content": "other"}]).text_start


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"max_tokens": 0}, "max_tokens", "at least 1, got 0"),
        ({"max_completion_tokens": -3}, "max_completion_tokens", "at least 1, got -3"),
        ({"max_tokens": 4, "min_tokens": 5}, "min_tokens", "less than or equal to max_tokens=4"),
        ({"max_tokens": MAX_MODEL_LEN}, "max_tokens", "maximum context length"),
        ({"n": 2}, "n", "one choice"),
        ({"logprobs": True}, "logprobs", "no logprobs"),
        ({"temperature": -1}, "temperature", "non-negative"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "stream=True"),
        ({"messages": []}, "messages", "must not be empty"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages", "text parts"),
    ],
)
def test_what_the_model_cannot_do_is_a_400_that_names_the_field(
    fields: dict[str, Any], param: str, said: str
) -> None:
    with pytest.raises(Refused, match=said) as caught:
        chat(**fields)
    assert (caught.value.status, caught.value.kind, caught.value.param) == (400, "BadRequestError", param)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"echo": True}, "echo"),
        ({"logprobs": 3}, "logprobs"),
    ],
)
def test_a_completion_that_cannot_be_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as caught:
        completion(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_another_model_is_a_404() -> None:
    with pytest.raises(Refused, match="`big` does not exist") as caught:
        chat(model="big")
    assert (caught.value.status, caught.value.kind, caught.value.param) == (404, "NotFoundError", "model")


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        (b"", "body", "json_invalid"),
        (b'{"messages":', "body", "json_invalid"),
        (b'{"messages":[{"role":"user","content":"\xff"}]}', "body", "json_invalid"),
        (b'{"messages":[{"role":"user","content":"\\ud800"}]}', "body", "json_invalid"),
        (b"[" * 100_000, "body", "type_error"),
        (b'{"other":' + b"[" * 100_000, "body", "json_invalid"),
        (b"[]", "body", "type_error"),
        (b"{}", "body.messages", "missing"),
        (b'{"messages":3}', "body.messages", "type_error"),
        (b'{"messages":[{"content":"x"}]}', "body.messages[0].role", "missing"),
        (b'{"messages":[],"max_tokens":"5"}', "body.max_tokens", "type_error"),
    ],
)
def test_a_body_that_is_not_a_request_is_a_schema_error_with_its_place(
    body: bytes, param: str, said: str
) -> None:
    error = refused(body)
    assert (error.status, error.kind, error.param) == (400, "Bad Request", param)
    assert said in error.message


def test_a_completion_without_a_prompt_is_a_schema_error() -> None:
    assert refused(b"{}", read_completion).param == "body.prompt"


TEXT = st.text(alphabet='a"é\n', max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
FIELDS = st.sampled_from(
    ["messages", "prompt", "max_tokens", "n", "stream", "stream_options", "min_tokens", "model"]
)


@settings(deadline=None)
@given(st.dictionaries(FIELDS, JSON, max_size=5), st.sampled_from([read_chat, read_completion]))
def test_any_json_is_either_asked_or_refused(body: dict[str, Any], read: Any) -> None:
    assert outcome(read, json.dumps(body).encode()) in (200, 400, 404)


def outcome(read: Any, body: bytes) -> int:
    try:
        read(body, "tiny", 0)
    except Refused as error:
        return error.status
    return 200


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(body: bytes) -> None:
    assert refused(body).status == 400
