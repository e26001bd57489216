"""Checks of the work that was served: failures, sample size, token counts, caches and streams."""

from __future__ import annotations

import numpy as np

from enginebench.analysis import stats
from enginebench.analysis.evidence import Evidence, Finding, unless

TEMPLATE_TOKENS = 128
"""The longest chat template that is taken off silently; those of today's models add 5 to 90."""


def error_rate(evidence: Evidence) -> Finding | None:
    """Share of measured requests that failed; those we cut off ourselves are `unfinished`."""
    requests = evidence.requests
    n = int((requests.measured & ~requests.cancelled).sum())
    if not n:
        return None
    share = (n - evidence.n_ok) / n
    return unless(
        share < 0.01,
        "fail",
        share,
        "This share of the requests failed; latencies show only those that succeeded: "
        "look at the errors by kind and at the engine's log.",
    )


def unfinished(evidence: Evidence) -> Finding | None:
    """Share of measured requests that we cut off: Ctrl-C, or the end of the drain."""
    requests = evidence.requests
    n, n_cut = int(requests.measured.sum()), int((requests.measured & requests.cancelled).sum())
    if not n:
        return None
    return unless(
        n_cut / n <= 0.01,
        "warn",
        n_cut / n,
        "This share of the requests was cut off before its end, the slowest ones most likely: "
        "latencies look better and throughput worse than they are; let the level run to its end.",
    )


def few_samples(evidence: Evidence) -> Finding:
    """Successful measured requests, against what a p90 needs."""
    n, least = evidence.n_ok, stats.minimum_samples(stats.QUANTILES["p90"])
    return unless(
        n >= least,
        "warn",
        float(n),
        f"So few successful requests give no p90 (it takes {least}; a p99 takes "
        f"{stats.minimum_samples(stats.QUANTILES['p99'])}): measure longer.",
    )


def token_source(evidence: Evidence) -> Finding | None:
    """Share of successful requests whose tokens the server counted."""
    if not evidence.n_ok:
        return None
    by_source = evidence.requests.tokens.sources
    n_unknown = by_source.get("none", 0)
    n_server = evidence.n_ok - n_unknown - by_source.get("logprobs", 0) - by_source.get("tokenizer", 0)
    return unless(
        n_server == evidence.n_ok,
        "fail" if n_unknown > stats.MAX_UNKNOWN * evidence.n_ok else "warn",
        n_server / evidence.n_ok,
        "Only for this share of the requests is the token count the server's own: "
        "have it send usage in the stream (stream_options.include_usage).",
    )


def engine_tokens(evidence: Evidence) -> Finding | None:
    """Output tokens of all phases over what the engine's own counter says it generated meanwhile.

    Only where every request ended well: of a broken one nobody knows how many tokens were made.
    """
    counted = evidence.result.engine_counters.get("generation_tokens") if evidence.result else None
    output = evidence.requests.tokens.output
    if not counted or not evidence.requests.ok.all() or not output.known.all():
        return None
    ratio = output.total(evidence.requests.ok) / counted
    return unless(
        abs(ratio - 1) <= 0.001,
        "warn",
        ratio,
        "We counted this share of the tokens that the engine's own counter says it generated: "
        "someone else used it, or one of the two counts is wrong.",
    )


def output_length(evidence: Evidence) -> Finding | None:
    """Output tokens served over those asked for."""
    tokens = evidence.requests.tokens
    rows = evidence.requests.sample & tokens.output.known
    asked = int(tokens.asked_output[rows].sum())
    if not asked:
        return None
    ratio = tokens.output.total(rows) / asked
    if ratio > 1.1:
        return Finding(
            "fail",
            ratio,
            "The server counts more output tokens than it was allowed to make: its usage is wrong, or it "
            "ignores the limit; do not believe its token rates.",
        )
    return unless(
        ratio >= 0.9,
        "warn",
        ratio,
        "Answers have this share of the asked length: do not compare with a target that serves "
        "another length; where the engine can, use ignore_eos.",
    )


def fewer_tokens_than_chunks(evidence: Evidence) -> Finding | None:
    """Share of successful requests whose output has more chunks than tokens: a chunk carries at
    least one, so the count is wrong, or something between server and client cuts chunks up."""
    requests, output = evidence.requests, evidence.requests.tokens.output
    rows = requests.sample & output.known
    if not rows.any():
        return None
    n_chunks = np.bincount(requests.outputs.request, minlength=len(requests))
    share = float((n_chunks[rows] > output.values[rows]).mean())
    return unless(
        share <= 0.01,
        "fail",
        share,
        "These requests have fewer tokens by the server's count than chunks with output: its usage is "
        "wrong; do not believe its token rates.",
    )


def prompt_length(evidence: Evidence) -> Finding | None:
    """Prompt tokens by the server's count over those asked for, its chat template taken off.

    The template is taken for the smallest excess of any request, up to `TEMPLATE_TOKENS`: with
    prompts of one length nothing else tells a template from a tokenizer that splits finer.
    """
    tokens = evidence.requests.tokens
    rows = evidence.requests.sample & tokens.prompt.known & (tokens.asked_prompt > 0)
    if not rows.any():
        return None
    served, asked = tokens.prompt.values[rows], tokens.asked_prompt[rows]
    template = int(np.clip((served - asked).min(), 0, TEMPLATE_TOKENS))
    ratio = float((served - template).sum() / asked.sum())
    return unless(
        abs(ratio - 1) <= 0.02,
        "warn",
        ratio,
        "The server counts so many prompt tokens for each one asked for, its chat template taken off: "
        "give `tokenizer` the model's tokenizer.json for exact lengths.",
    )


def prefix_cache(evidence: Evidence) -> Finding | None:
    """Share of prompt tokens that came from the server's cache, where every prompt is new."""
    tokens = evidence.requests.tokens
    rows = evidence.requests.sample & tokens.prompt.known & tokens.cached.known
    prompt_tokens = tokens.prompt.total(rows)
    if not evidence.unique_prompts or not prompt_tokens:
        return None
    share = tokens.cached.total(rows) / prompt_tokens
    return unless(
        share <= 0.05,
        "warn",
        share,
        "This share of the prompt tokens came from the prefix cache although every prompt is unique: "
        "TTFT is too good; reset the cache or restart the engine, or use another seed.",
    )


def hidden_reasoning(evidence: Evidence) -> Finding | None:
    """Share of output tokens that were reasoning the server did not stream."""
    tokens, rows = evidence.requests.tokens, evidence.requests.sample & evidence.requests.tokens.output.known
    n_tokens = tokens.output.total(rows)
    n_hidden = int(tokens.hidden[rows].sum())
    if not n_tokens or not n_hidden:
        return None
    return Finding(
        "warn",
        n_hidden / n_tokens,
        "This share of the output tokens is hidden reasoning: TTFT holds the time it took, throughput "
        "and TPOT count only what was streamed; do not rank against a target without it.",
    )


def buffered_stream(evidence: Evidence) -> Finding | None:
    """Share of longer answers whose chunks all came at once."""
    outputs = evidence.requests.outputs
    rows = np.flatnonzero(evidence.requests.sample & (outputs.last - outputs.first >= 2))
    if not len(rows):
        return None
    at_once = outputs.at_ns[outputs.last[rows]] == outputs.at_ns[outputs.first[rows]]
    share = float(at_once.mean())
    return unless(
        share <= 0.05,
        "warn",
        share,
        "This share of the streams arrived in one piece: something between engine and client "
        "buffers them (a proxy, compression), and TTFT is the time of the whole answer.",
    )
