"""How many tokens a response has, from which source, and how many each chunk carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from enginebench.model.record import OUTPUT_KINDS, ChunkKind, TokenSource
from enginebench.wire.frames import Usage


class UsageSeen(NamedTuple):
    """A usage that is not null."""

    chunk: int
    """Index of the chunk it came on."""
    n_finished: int
    """Choices that had finished by then."""
    usage: Usage


@dataclass(slots=True)
class Tokens:
    """Token counts of a response. None where the server did not tell."""

    per_chunk: list[int | None]
    source: TokenSource = "none"
    prompt: int | None = None
    output: int | None = None
    reasoning: int | None = None
    """Part of `output`, never on top of it."""
    cached: int | None = None


@dataclass(slots=True)
class Counts:
    """What the chunks of a response say of tokens; keys are indices of chunks."""

    usages: list[UsageSeen]
    token_ids: dict[int, int]
    logprobs: dict[int, int]
    n_choices: int


def settle(kinds: Sequence[ChunkKind], counts: Counts) -> Tokens:
    """Token ids > continuous usage > usage > logprobs, and per-chunk counts where they are exact.

    Usage is the last one that is not null, never a sum. Per-chunk counts are exact when their
    sum, with what follows the last output (an end token has no text), is the total.
    """
    unknown: list[int | None] = [None] * len(kinds)
    tokens = Tokens(unknown)
    usages = _without_placeholders(kinds, counts.usages)
    _take_usage(tokens, usages, counts.n_choices)

    by_ids = _spread(kinds, counts.token_ids)
    if by_ids is not None and tokens.output in {None, by_ids.total}:
        tokens.per_chunk, tokens.output, tokens.source = by_ids.per_chunk, by_ids.total, "token_ids"
        return tokens
    by_usage = _spread_usage(kinds, usages) if counts.n_choices <= 1 else None
    if by_usage is not None:
        tokens.per_chunk = by_usage.per_chunk
        tokens.source = "continuous_usage" if len(usages) > 1 else "usage"
        return tokens
    by_logprobs = _spread(kinds, counts.logprobs)
    if by_logprobs is not None and tokens.output in {None, by_logprobs.total}:
        tokens.per_chunk = by_logprobs.per_chunk
        tokens.source = "logprobs" if tokens.output is None else "usage"
        tokens.output = by_logprobs.total
    elif tokens.output is not None:
        tokens.source = "usage"
    return tokens


def _take_usage(tokens: Tokens, usages: Sequence[UsageSeen], n_choices: int) -> None:
    for seen in usages:
        usage = seen.usage
        output_details, prompt_details = usage.completion_tokens_details, usage.prompt_tokens_details
        reasoning = (output_details.reasoning_tokens if output_details else None, usage.reasoning_tokens)
        cached = (prompt_details.cached_tokens if prompt_details else None, usage.prompt_cache_hit_tokens)
        tokens.prompt = _last(tokens.prompt, usage.prompt_tokens)
        tokens.output = _last(tokens.output, usage.completion_tokens)
        tokens.reasoning = _last(tokens.reasoning, *reversed(reasoning))
        tokens.cached = _last(tokens.cached, *reversed(cached))
    if _one_per_choice(usages, n_choices):
        tokens.output = _total(seen.usage.completion_tokens for seen in usages)


def _one_per_choice(usages: Sequence[UsageSeen], n_choices: int) -> bool:
    """llama.cpp with n > 1 sends one usage for each choice as that choice ends, and none for all.

    Each counts its own choice only, so the request's output is their sum. It shows in the order:
    the k-th usage comes when exactly k choices have finished.
    """
    return n_choices > 1 and [seen.n_finished for seen in usages] == list(range(1, n_choices + 1))


def _without_placeholders(kinds: Sequence[ChunkKind], usages: list[UsageSeen]) -> list[UsageSeen]:
    """Zero completion tokens after output has begun is a placeholder: Ollama's text completions
    put one on every chunk but the last."""
    first_output = next((i for i, kind in enumerate(kinds) if kind in OUTPUT_KINDS), len(kinds))
    return [seen for seen in usages if seen.usage.completion_tokens != 0 or seen.chunk < first_output]


class _Spread(NamedTuple):
    per_chunk: list[int | None]
    total: int


def _spread(kinds: Sequence[ChunkKind], counts: Mapping[int, int]) -> _Spread | None:
    """Counts given to output chunks; those of other frames are carried to the next output chunk.

    None where an output chunk has no count, or the first has none of its own or carried.
    """
    if not counts:
        return None
    per_chunk: list[int | None] = [None] * len(kinds)
    carried = 0
    is_first = True
    for i, kind in enumerate(kinds):
        carried += counts.get(i, 0)
        if kind not in OUTPUT_KINDS:
            continue
        if (is_first or i not in counts) and not carried:
            return None
        per_chunk[i] = carried
        carried = 0
        is_first = False
    return _Spread(per_chunk, sum(counts.values()))


def _spread_usage(kinds: Sequence[ChunkKind], usages: Sequence[UsageSeen]) -> _Spread | None:
    """Differences of a running total that stands on every output chunk and never falls."""
    growth: dict[int, int] = {}
    last = 0
    for seen in usages:
        total = seen.usage.completion_tokens
        if total is None:
            continue
        if total < last:
            return None
        growth[seen.chunk] = growth.get(seen.chunk, 0) + total - last
        last = total
    if any(kind in OUTPUT_KINDS and i not in growth for i, kind in enumerate(kinds)):
        return None
    return _spread(kinds, growth)


def _last(*values: int | None) -> int | None:
    return next((value for value in reversed(values) if value is not None), None)


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
