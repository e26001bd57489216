"""Whether the targets give the same answers to the same fixed prompts (run.json, `agreement`).

A broken quantisation or a wrong chat template shows here. Greedy answers of two right engines may
part all the same, since sums are taken in another order; so this warns and never fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

APART_BELOW = 0.05
"""A target whose answers share less than this part of their length with all the others' is named."""


def agreement(targets: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """One verdict over the targets that were asked; none where fewer than two were."""
    answers = {target["name"]: _outputs(target) for target in targets if target.get("agreement")}
    if len(answers) < 2:
        return ()
    equal, shared, words = [], {}, []
    for a, b in combinations(answers, 2):
        both = [
            (answers[a][sha], answers[b][sha]) for sha in answers[a] if sha in answers[b] and answers[a][sha]
        ]
        if not both:
            continue
        same = [x == y for x, y in both]
        part = sum(_common_prefix(x, y) / max(len(x), len(y), 1) for x, y in both) / len(both)
        equal.append(all(same))
        shared[a, b] = part
        words.append(f"{a} and {b}: {sum(same)} of {len(same)} equal, {part:.0%} of the text alike")
    detail = "; ".join(words) or "no answer in common"
    apart = _apart(list(answers), shared)
    if apart:
        detail += f". {', '.join(apart)} diverges at once: check its quantisation and chat template"
    verdict = "pass" if equal and all(equal) else "warn"
    return ({"name": "agreement", "verdict": verdict, "detail": detail},)


def _outputs(target: Mapping[str, Any]) -> dict[str, str]:
    return {one["prompt_sha256"]: one["output"] for one in target["agreement"] if one["output"] is not None}


def _common_prefix(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _apart(names: Sequence[str], shared: Mapping[tuple[str, str], float]) -> list[str]:
    """With two targets no one can say which of them is wrong: both are named."""
    return [
        name
        for name in names
        if (own := [part for pair, part in shared.items() if name in pair]) and max(own) < APART_BELOW
    ]
