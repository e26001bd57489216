"""Numbers and foreign text as a person reads them.

Names, models, engine versions and error words come from outside. They may hold escape sequences
that repaint a terminal, bidirectional marks that reorder a line, or markup; every output passes
them through here first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"
)
_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
# Controls, then the marks that reorder text: RLO and its kin, the isolates, the directional marks.
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# An underscore between letters starts no emphasis: http_429 stays readable.
_MARKDOWN = re.compile(r"([\\`*\[\]#|~$!]|(?<![^\W_])_|_(?![^\W_]))")
_BACKTICKS = re.compile(r"`+")


def clean_lines(text: str) -> list[str]:
    """Foreign text without control characters, line by line; lines that hold nothing are left out."""
    text = _ESCAPE_SEQUENCES.sub("", text)
    lines = (_SURROGATES.sub("\ufffd", _UNSEEN.sub("", line)) for line in _LINE_ENDS.split(text))
    return [line.expandtabs(4).rstrip() for line in lines if line.strip()]


def clean(text: str) -> str:
    """Foreign text on one line, without control characters, runs of white space made one space."""
    return " ".join(" ".join(clean_lines(text)).split())


def number(value: float) -> str:
    """Three significant digits, never in powers of ten between 0.0001 and a billion: 0.123, 45.0, 12,300."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.2e}".partition("e")[2])
    if not -4 <= exponent < 9:
        return f"{value:.2e}"
    return f"{round(value, 2 - exponent):,.{max(0, 2 - exponent)}f}"


def whole(value: float) -> str:
    """A count or a load level, all digits shown: 1,204, or 2.5 requests/s."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def some(n: int, noun: str) -> str:
    """`1 repeat`, `3 repeats`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def markup_text(text: str) -> str:
    """Foreign text for a place that reads HTML tags, as plotly's labels do."""
    return escape(clean(text))


def markdown_text(text: str) -> str:
    """Foreign text that Markdown shows as it is, also inside a table cell."""
    return escape(_MARKDOWN.sub(r"\\\1", clean(text)), quote=False)


def markdown_code(text: str) -> str:
    """Foreign text as a code span, also inside a table cell; the fence outlasts any backticks in it."""
    text = clean(text).replace("|", "\\|")
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"
