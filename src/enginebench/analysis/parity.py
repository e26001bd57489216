"""Whether all targets were given the same work: to be known before any two numbers are compared.

Requests are set side by side by their seq. Equal ordinals of two targets send equal prompts, so the
requests that both got through (one target is faster and gets further) are the common prefix of the
cell. Every target is held against the first one that answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from enginebench.analysis import columns
from enginebench.analysis.agreement import agreement
from enginebench.analysis.columns import BoolArray, FloatArray, IntArray, Ints
from enginebench.model.run import Run

LENGTHS_WITHIN = (0.9, 1.1)
"""Output tokens of a target / those of the first one, over the same requests of a cell."""
TEMPLATE_UP_TO = 0.1
"""A constant number of extra prompt tokens is a chat template up to this share of the prompt."""

_CELL = ("load", "level", "repeat")


@dataclass(frozen=True, slots=True)
class _Work:
    """The successful measured requests of one target."""

    name: str
    seq: IntArray
    cell: IntArray
    """Code of each request's cell; equal codes are equal cells."""
    sha256: IntArray
    """Code of each request's prompt; equal codes are equal prompts."""
    prompt: Ints
    output: Ints


def parity(run: Run) -> tuple[dict[str, Any], ...]:
    """{name, verdict: pass|warn|fail, detail} for same_prompts, prompt_tokens, output_lengths,
    sampling and agreement; none where fewer than two targets were measured.

    A `fail` means unequal work: the targets' speeds must not be compared.
    """
    works = _works(run)
    if len(works) < 2:
        return ()
    about = {target["name"]: target for target in run.meta["targets"]}
    measured = [about[work.name] for work in works if work.name in about]
    return (
        _same_prompts(works),
        _prompt_tokens(works),
        _output_lengths(works),
        _sampling(measured),
        *agreement(measured),
    )


def _works(run: Run) -> list[_Work]:
    table = run.records
    cell = np.zeros(len(table), np.int64)
    for name in _CELL:
        codes = _codes(table, name)
        cell = cell * (int(codes.max(initial=0)) + 1) + codes
    sha256 = _codes(table, "prompt_sha256")
    counted = columns.is_one_of(table, "outcome", {"ok"}) & columns.is_one_of(table, "phase", {"measure"})
    seq = columns.filled(table, "seq")
    prompt, output = columns.ints(table, "prompt_tokens"), columns.ints(table, "output_tokens")
    works = []
    for target in run.meta["targets"]:
        rows = np.flatnonzero(counted & columns.is_one_of(table, "target", {target["name"]}))
        if len(rows):
            works.append(
                _Work(target["name"], seq[rows], cell[rows], sha256[rows], prompt.at(rows), output.at(rows))
            )
    return works


def _codes(table: pa.Table, name: str) -> IntArray:
    """A small number for each value of a column: equal numbers are equal values."""
    column = table.column(name).combine_chunks()
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    codes: IntArray = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _common(first: _Work, other: _Work) -> tuple[IntArray, IntArray]:
    """Rows of both of which the seqs are equal."""
    _, here, there = np.intersect1d(first.seq, other.seq, return_indices=True)
    return here, there


def _verdict(name: str, verdict: str, detail: str) -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "detail": detail}


def _same_prompts(works: Sequence[_Work]) -> dict[str, Any]:
    first, *others = works
    n_common, differing, apart = 0, [], []
    for other in others:
        here, there = _common(first, other)
        n_differ = int((first.sha256[here] != other.sha256[there]).sum())
        n_common += len(here)
        if not len(here):
            apart.append(other.name)
        if n_differ:
            differing.append(f"{other.name} was sent {n_differ:,} of {len(here):,} other than {first.name}")
    if differing:
        return _verdict("same_prompts", "fail", "; ".join(differing))
    if apart:
        return _verdict("same_prompts", "warn", f"no request in common with {first.name}: {', '.join(apart)}")
    return _verdict("same_prompts", "pass", f"equal on all {n_common:,} requests in common")


def _prompt_tokens(works: Sequence[_Work]) -> dict[str, Any]:
    first, *others = works
    verdicts, details = [], []
    for other in others:
        verdict, detail = _extra_tokens(first, other)
        verdicts.append(verdict)
        details.append(detail)
    return _verdict("prompt_tokens", _worst(verdicts), "; ".join(details))


def _extra_tokens(first: _Work, other: _Work) -> tuple[str, str]:
    here, there = _common(first, other)
    known = first.prompt.known[here] & other.prompt.known[there]
    ours, theirs = first.prompt.values[here][known], other.prompt.values[there][known]
    if not len(ours):
        return "warn", f"{other.name}: not known, a server does not report them"
    extra = theirs - ours
    if not extra.any():
        return "pass", f"{other.name}: equal to {first.name} on {len(extra):,} requests"
    if extra.min() == extra.max():
        words = f"{other.name}: {extra[0]:+d} on every request against {first.name}"
        if abs(int(extra[0])) <= TEMPLATE_UP_TO * ours.mean():
            return "pass", f"{words}, as a chat template adds"
        return "fail", f"{words}, {abs(int(extra[0])) / ours.mean():.0%} of the prompt"
    return "fail", f"{other.name}: {extra.min():+d} to {extra.max():+d} against {first.name}"


def _output_lengths(works: Sequence[_Work]) -> dict[str, Any]:
    """Of every cell the requests in common: the ratio that is furthest from 1 is judged."""
    first, *others = works
    verdicts, details = [], []
    for other in others:
        here, there = _common(first, other)
        known = first.output.known[here] & other.output.known[there]
        ours, theirs = first.output.values[here][known], other.output.values[there][known]
        ratios = _ratios(first.cell[here][known], ours, theirs)
        if not len(ratios):
            verdicts.append("warn")
            details.append(f"{other.name}: not known, a server does not report them")
            continue
        worst = float(ratios[np.argmax(np.abs(np.log(np.maximum(ratios, 1e-9))))])
        verdicts.append("pass" if LENGTHS_WITHIN[0] <= worst <= LENGTHS_WITHIN[1] else "fail")
        details.append(f"{other.name}: {100 * worst:.3g} % of {first.name}'s where they differ most")
    return _verdict("output_lengths", _worst(verdicts), "; ".join(details))


def _ratios(cell: IntArray, ours: IntArray, theirs: IntArray) -> FloatArray:
    _, code = np.unique(cell, return_inverse=True)
    base = np.bincount(code, ours)
    has: BoolArray = base > 0
    ratios: FloatArray = np.bincount(code, theirs)[has] / base[has]
    return ratios


def _sampling(about: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """From the fields that each target was sent with every request (run.json, `request_fields`)."""
    sent = {target["name"]: target.get("request_fields") for target in about}
    if None in sent.values():
        return _verdict("sampling", "warn", "this run does not tell with which fields requests were sent")
    temperatures = {name: fields.get("temperature") for name, fields in sent.items() if fields is not None}
    endpoints = {target["name"]: target.get("endpoint") for target in about}
    if len(set(temperatures.values())) > 1:
        words = ", ".join(
            f"{name} {'its own default' if value is None else value}" for name, value in temperatures.items()
        )
        return _verdict("sampling", "fail", f"temperatures differ: {words}")
    if len(set(endpoints.values())) > 1:
        words = ", ".join(f"{name} {endpoint}" for name, endpoint in endpoints.items())
        return _verdict("sampling", "warn", f"equal temperature, but other endpoints: {words}")
    told = next(iter(temperatures.values()))
    return _verdict("sampling", "pass", f"temperature {'each default' if told is None else told}")


def _worst(verdicts: Sequence[str]) -> str:
    return next(verdict for verdict in ("fail", "warn", "pass") if verdict in verdicts)
