"""Failure cases seen in real servers and clients, as byte scripts, at every split point."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.wire.playback import (
    Script,
    bytewise,
    facts,
    in_one_read,
    load_cases,
    output_ms,
    play,
    scripts_of,
)

from enginebench.model.record import OUTPUT_KINDS, Decoded
from enginebench.wire.decode import decode

CASES = load_cases()
SCRIPTED = {id_: scripts_of(case) for id_, case in CASES.items() if scripts_of(case)}

IN_WORDS = {"err-context-400": "a check before sending, against the model's context length"}
"""Cases without bytes to decode, and where they belong."""

OF_A_RUN = {
    "run", "run_wall_ms_max", "exit_code", "ok", "failed", "output_tok_s", "result_file", "default",
    "with_retry", "readiness_attempts", "measured_requests_with_503", "probe_only", "then",
}  # fmt: skip
"""Expectations of whole runs, probes and readiness; the rest is the decoder's to meet."""

ENDS: dict[str, list[tuple[str, str | None]]] = {
    "err-429": [("rejected", "http_429"), ("ok", None)],
    "err-503-loading": [("rejected", "http_503"), ("ok", None)],
    "err-all-failed": [("error", "http_500")],
    "err-ignore-eos-400": [("error", "http_400")],
    "err-max-completion-tokens": [("error", "http_400")],
}
"""Outcome and error kind where the case speaks of the run only, one for each answer."""


def tpot_ms(decoded: Decoded) -> float | None:
    """(last - first) / (output tokens - tokens in the first chunk); None where undefined."""
    times = output_ms(decoded)
    first_tokens = next(
        n
        for n, kind in zip(decoded.chunks.n_tokens, decoded.chunks.kind, strict=True)
        if kind in OUTPUT_KINDS
    )
    n_later = (decoded.output_tokens or 0) - (first_tokens or 1)
    return None if len(times) < 2 or n_later <= 0 else (times[-1] - times[0]) / n_later


def first(times: list[float]) -> float | None:
    return times[0] if times else None


def count(decoded: Decoded, *kinds: str) -> int:
    return sum(kind in kinds for kind in decoded.chunks.kind)


MEASURES: dict[str, Any] = {
    "status": lambda d: d.outcome,
    "error_class": lambda d: d.error_kind,
    "ttft_ms": lambda d: first(output_ms(d)),
    "ttfo_ms": lambda d: first(output_ms(d, {"content"})),
    "last_token_ms": lambda d: output_ms(d)[-1],
    "done_ms": lambda d: first(output_ms(d, {"done"})),
    "output_tokens": lambda d: d.output_tokens,
    "reasoning_tokens": lambda d: d.reasoning_tokens,
    "tpot_ms": lambda d: tpot_ms(d) if output_ms(d) else None,
    "icl_ms": lambda d: [b - a for a, b in zip(output_ms(d), output_ms(d)[1:], strict=False)],
    "e2e_tok_s": lambda d: d.output_tokens / output_ms(d)[-1] * 1000,
    "text": lambda d: d.text,
    "text_len": lambda d: len(d.text),
    "finish": lambda d: {"0": d.finish_reason},
    "comments": lambda d: count(d, "ping"),
    "n_output_chunks": lambda d: count(d, *OUTPUT_KINDS),
    "partial_output_chunks": lambda d: count(d, *OUTPUT_KINDS),
    "tool_chunks": lambda d: count(d, "tool"),
}


def check(case: dict[str, Any], decoded: Decoded) -> None:
    for key, wanted in case["expect"].items():
        if key == "message_contains":
            assert wanted in (decoded.error_message or "")
        elif key not in OF_A_RUN:
            got = MEASURES[key](decoded)
            assert got == (pytest.approx(wanted) if isinstance(wanted, float) else wanted), key


def test_only_cases_told_in_words_have_no_script() -> None:
    assert CASES.keys() - SCRIPTED.keys() == IN_WORDS.keys()


@pytest.mark.parametrize("id_", SCRIPTED)
def test_case_has_the_expected_numbers(id_: str) -> None:
    decoded = [decode(play(answer)) for answer in SCRIPTED[id_]]
    check(CASES[id_], decoded[0])
    if id_ in ENDS:
        assert [(d.outcome, d.error_kind) for d in decoded] == ENDS[id_]
    else:
        assert "status" in CASES[id_]["expect"]


def test_a_429_keeps_when_to_come_back() -> None:
    refused, served = (decode(play(answer)) for answer in SCRIPTED["err-429"])
    assert refused.ratelimit == '{"retry-after":"2"}'
    assert refused.error_message == "Rate limit reached"
    assert output_ms(served)[0] == CASES["err-429"]["expect"]["with_retry"]["ttft_ms"]


@pytest.mark.parametrize("id_", SCRIPTED)
def test_case_is_decoded_alike_at_every_split(id_: str) -> None:
    for answer in SCRIPTED[id_]:
        as_written = decode(play(answer))
        assert decode(bytewise(answer)) == as_written
        for i in split_points(answer):
            assert decode(play(answer, [i])) == as_written, i


@pytest.mark.parametrize("id_", SCRIPTED)
def test_case_in_one_read_has_the_same_facts_at_the_time_of_that_read(id_: str) -> None:
    for answer in SCRIPTED[id_]:
        as_written = facts(decode(play(answer)))
        whole = decode(in_one_read(answer))
        assert facts(whole) == as_written
        assert len(set(whole.chunks.arrived_ns)) <= 1
        for i in list(split_points(answer))[::13]:
            assert facts(decode(in_one_read(answer, [i]))) == as_written, i


def split_points(answer: Script) -> range | list[int]:
    """Every offset; of a very long answer those near its ends and at event borders, and some more."""
    raw = answer.raw
    if len(raw) < 10_000:
        return range(1, len(raw))
    near = {*range(1, 2_000), *range(len(raw) - 2_000, len(raw))}
    borders = {i + shift for i in range(len(raw)) if raw.startswith(b"\n\n", i) for shift in range(-3, 4)}
    return sorted(near | borders | set(random.Random(7).sample(range(1, len(raw)), 50)))
