"""What the parity checks mean for a reader: whether the targets' numbers may be compared."""

from __future__ import annotations

from dataclasses import dataclass

from enginebench.model.summary import Summary
from enginebench.report.text import clean, listed

TITLES = {
    "same_prompts": "same prompts",
    "prompt_tokens": "prompt tokens",
    "output_lengths": "output lengths",
    "sampling": "sampling",
    "agreement": "output agreement",
}


@dataclass(frozen=True, slots=True)
class Parity:
    title: str
    verdict: str
    detail: str


def parity(summary: Summary) -> tuple[Parity, ...]:
    """The checks in their order, cleaned; none where fewer than two targets were measured."""
    return tuple(
        Parity(
            TITLES.get(check["name"], clean(check["name"])),
            str(check["verdict"]),
            clean(str(check["detail"])),
        )
        for check in summary.parity
    )


def unequal_work(summary: Summary) -> str | None:
    """The sentence for the top of every report when targets were not given the same work."""
    failed = [check for check in parity(summary) if check.verdict == "fail"]
    if not failed:
        return None
    reasons = ". ".join(f"{check.title}: {check.detail}" for check in failed)
    names = listed(check.title for check in failed)
    return f"Unequal work ({names}): do not compare these targets. {reasons}."


def parity_line(check: Parity) -> str:
    """`warn: output agreement. a and b: 3 of 20 equal, ...`"""
    return f"{check.verdict}: {check.title}. {check.detail}"
