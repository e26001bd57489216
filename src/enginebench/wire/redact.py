"""A provider's words, made fit to store: one line, no secrets, at most 500 characters."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

MAX_MESSAGE_CHARS = 500

# A key that a provider echoes: what follows `Bearer`, or a known prefix and a long tail.
_BEARER = re.compile(r"(?i)\b(bearer)[\s:]+[^\s\"',;}]+")
_KEY = re.compile(
    r"(?i)\b(?:sk|pk|gsk|hf|xai|nvapi|pplx|bce-v3|fw|tgp|key|AIza)[-_/][A-Za-z0-9_\-./*]{6,}|\bAIza[\w\-]{20,}"
)
_NOT_PLAIN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")


def redact(text: str, secrets: Sequence[str]) -> str:
    """`text` on one line, `***` in place of `secrets` and of whatever looks like a key."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _NOT_PLAIN.sub(" ", text).strip()
    text = _BEARER.sub(r"\1 ***", text)
    return _KEY.sub("***", text)


def message(error: object, secrets: Sequence[str]) -> str | None:
    """An error in any shape as one short line; None if it has no words."""
    try:
        text = _words(error)
    except (ValueError, RecursionError):  # a number of 5,000 digits, nesting without end
        return None
    return redact(text, secrets)[:MAX_MESSAGE_CHARS] or None


def _words(error: object) -> str:
    """The words of an error that may be text, an object, or a list of them (FastAPI's `detail`)."""
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        return "; ".join(filter(None, map(_words, error)))
    if isinstance(error, dict):
        for key in ("message", "msg", "detail", "error", "reason", "description"):
            if found := _words(error.get(key)):
                return found
        return json.dumps(error, ensure_ascii=False, default=str) if error else ""
    return "" if error is None or isinstance(error, bool) else str(error)
