from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.playback import delta, sse_capture, text, usage

from enginebench.model.record import OUTPUT_KINDS, Decoded
from enginebench.wire.decode import decode

STOP = delta(finish="stop")


def so_far(event: dict[str, Any], completion_tokens: int | None) -> dict[str, Any]:
    """An event that carries a running total, as with vLLM's continuous_usage_stats."""
    counts = {"prompt_tokens": 5, "completion_tokens": completion_tokens}
    return event | {"usage": None if completion_tokens is None else counts}


def ids(event: dict[str, Any], n: int | None) -> dict[str, Any]:
    return {"choices": [event["choices"][0] | {"token_ids": None if n is None else list(range(n))}]}


def marks(event: dict[str, Any], n: int, form: str = "content") -> dict[str, Any]:
    mark: Any = {"token": "x", "logprob": -1.5, "top_logprobs": []} if form == "content" else "x"
    return {"choices": [event["choices"][0] | {"logprobs": {form: [mark] * n}}]}


def per_output(decoded: Decoded) -> list[int | None]:
    chunks = decoded.chunks
    return [n for n, kind in zip(chunks.n_tokens, chunks.kind, strict=True) if kind in OUTPUT_KINDS]


A, B, EMPTY = delta(content="a"), delta(content="b"), delta(content="")

SITUATIONS: dict[str, tuple[list[object], str, int | None, list[int | None]]] = {
    "nothing told": ([A, B, STOP], "none", None, [None, None]),
    "usage at the end": ([A, B, STOP, usage(9)], "usage", 9, [None, None]),
    "usage on the finish": ([A, B, so_far(STOP, 9)], "usage", 9, [None, None]),
    "usage is null but once": (
        [so_far(A, None), so_far(B, None), STOP, usage(9), so_far(STOP, None)],
        "usage",
        9,
        [None, None],
    ),
    "usage of groq": ([A, STOP | {"x_groq": {"usage": {"completion_tokens": 3}}}], "usage", 3, [None]),
    "running total": (
        [so_far(EMPTY, 0), so_far(A, 1), so_far(B, 4), STOP, usage(4)],
        "continuous_usage",
        4,
        [1, 3],
    ),
    "running total grows without output": (
        [so_far(EMPTY, 2), so_far(A, 3), so_far(EMPTY, 5), so_far(B, 6), STOP],
        "continuous_usage",
        6,
        [3, 3],
    ),
    "running total grows after the last output": (
        [so_far(A, 1), so_far(B, 2), so_far(STOP, 3)],
        "continuous_usage",
        3,
        [1, 1],
    ),
    "running total of a stream cut off": ([so_far(A, 1), so_far(B, 3)], "continuous_usage", 3, [1, 2]),
    "one chunk with its usage": ([so_far(delta(content="ab", finish="stop"), 7)], "usage", 7, [7]),
    "total missing on one output": (
        [so_far(A, 1), B, so_far(A, 3), STOP, usage(3)],
        "usage",
        3,
        [None, None, None],
    ),
    "total missing on an output after a frame that grew": (
        [so_far(A, 1), so_far(EMPTY, 2), B, so_far(A, 4), STOP],
        "usage",
        4,
        [None, None, None],
    ),
    "total falls": ([so_far(A, 5), so_far(B, 4), STOP, usage(3)], "usage", 3, [None, None]),
    "zeros until the end": (
        [so_far(A, 0), so_far(B, 0), so_far(STOP, 0), usage(9)],
        "usage",
        9,
        [None, None],
    ),
    "zeros to the end": ([so_far(A, 0), so_far(B, 0), STOP, usage(0)], "none", None, [None, None]),
    "zero and no output": ([EMPTY, STOP, usage(0)], "usage", 0, []),
    "two choices and one total": (
        [so_far(A, 1), so_far(delta(1, content="b"), 1), STOP, delta(1, finish="stop"), usage(8)],
        "usage",
        8,
        [None, None],
    ),
    "one usage for each choice, on its finish": (
        [
            text("a"),
            text("b", 1),
            so_far(text("", 1, "length"), 12),
            text("c"),
            so_far(text("", 0, "stop"), 5),
        ],
        "usage",
        17,
        [None, None, None],
    ),
    "one usage for each choice, after its finish": (
        [A, delta(1, content="b"), STOP, usage(12), delta(1, finish="stop"), usage(5)],
        "usage",
        17,
        [None, None],
    ),
    "one usage repeated for two choices": (
        [A, delta(1, content="b"), STOP, delta(1, finish="stop"), usage(17), usage(17)],
        "usage",
        17,
        [None, None],
    ),
    "token ids": ([ids(A, 1), ids(B, 3), STOP], "token_ids", 4, [1, 3]),
    "token ids of two choices": (
        [ids(A, 2), ids(delta(1, content="b"), 3), STOP, delta(1, finish="stop"), usage(5)],
        "token_ids",
        5,
        [2, 3],
    ),
    "token ids without output": ([ids(EMPTY, 2), ids(A, 1), ids(STOP, 1), usage(4)], "token_ids", 4, [3]),
    "token ids that are always empty": ([ids(A, 0), ids(B, 0), STOP], "none", None, [None, None]),
    "token ids that disagree with usage": ([ids(A, 1), ids(B, 1), STOP, usage(9)], "usage", 9, [None, None]),
    "token ids missing on one output": ([ids(A, 1), ids(B, None), STOP, usage(2)], "usage", 2, [None, None]),
    "logprobs": ([marks(A, 1), marks(B, 2), STOP], "logprobs", 3, [1, 2]),
    "logprobs of text completions": (
        [marks(text("a"), 2, "tokens"), marks(text("b"), 1, "tokens"), text("", 0, "stop")],
        "logprobs",
        3,
        [2, 1],
    ),
    "logprobs without output": ([marks(EMPTY, 1), marks(A, 1), STOP], "logprobs", 2, [2]),
    "logprobs that agree with usage": ([marks(A, 1), marks(B, 2), STOP, usage(3)], "usage", 3, [1, 2]),
    "logprobs that disagree with usage": (
        [marks(A, 1), marks(B, 2), STOP, usage(9)],
        "usage",
        9,
        [None, None],
    ),
    "logprobs missing on one output": ([marks(A, 1), B, STOP], "none", None, [None, None]),
    "output before its tokens are told": ([A, so_far(B, 3), STOP], "usage", 3, [None, None]),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_tokens_and_their_source(name: str) -> None:
    events, source, total, counts = SITUATIONS[name]
    decoded = decode(sse_capture(*events))
    assert (decoded.token_source, decoded.output_tokens, per_output(decoded)) == (source, total, counts)
    assert len(decoded.chunks.n_tokens) == len(decoded.chunks.kind)


def test_chunks_without_output_have_no_tokens_of_their_own() -> None:
    decoded = decode(sse_capture(so_far(EMPTY, 1), so_far(A, 2), so_far(STOP, 2)))
    assert decoded.chunks.n_tokens == [None, 2, None]


DETAILS: dict[str, tuple[dict[str, Any], tuple[int | None, int | None]]] = {
    "openai": (
        {"completion_tokens_details": {"reasoning_tokens": 3}, "prompt_tokens_details": {"cached_tokens": 4}},
        (3, 4),
    ),
    "sglang": ({"reasoning_tokens": 3, "prompt_tokens_details": None}, (3, None)),
    "deepseek": ({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 1}, (None, 4)),
    "zeros are counts": ({"reasoning_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}, (0, 0)),
    "details that are none": ({"completion_tokens_details": [], "prompt_tokens_details": "x"}, (None, None)),
}


@pytest.mark.parametrize("name", DETAILS)
def test_reasoning_and_cached_tokens_are_parts_of_the_totals(name: str) -> None:
    more, counts = DETAILS[name]
    decoded = decode(sse_capture(A, STOP, usage(9, 5, **more)))
    assert (decoded.output_tokens, decoded.prompt_tokens) == (9, 5)
    assert (decoded.reasoning_tokens, decoded.cached_tokens) == counts


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("7", 7),
        (7.0, 7),
        (-1, None),
        (7.5, None),
        (2**31, None),
        (True, None),
        ("x", None),
        ([], None),
        (None, None),
    ],
)
def test_a_count_in_another_type_is_read_and_a_wrong_one_is_not_measured(
    written: object, count: int | None
) -> None:
    event = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": written}}
    decoded = decode(sse_capture(A, STOP, event))
    assert (decoded.output_tokens, decoded.prompt_tokens) == (count, 5)


GROWTH = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=20)


@given(GROWTH)
def test_no_token_of_a_running_total_is_lost_or_counted_twice(frames: list[tuple[bool, int]]) -> None:
    total, events, outputs, pending = 0, [], [], 0
    for has_output, growth in frames:
        total += growth
        pending += growth
        events.append(so_far(A if has_output else EMPTY, total))
        if has_output:
            outputs.append(pending)
            pending = 0
    decoded = decode(sse_capture(*events))
    if outputs and outputs[0]:
        assert per_output(decoded) == outputs
        assert decoded.output_tokens == sum(outputs) + pending
