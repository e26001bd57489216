"""Text of an exact number of tokens.

Decoding random token ids does not give it: neighbours merge when the text is encoded again, and
the server counts the merged ones. So text is made of words, encoded, and mended until the count
is right.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from typing import Protocol

from enginebench.errors import UserError

_MAX_ROUNDS = 32
_N_FILLERS = 64


class Tokenizer(Protocol):
    def count(self, text: str) -> int:
        """Tokens of `text` alone: no BOS, no chat template, no truncation."""
        ...


def fit(words: Callable[[int], list[str]], joiner: str, n_tokens: int, tokenizer: Tokenizer) -> str:
    """A text of exactly `n_tokens` tokens that begins with the first words, if at all possible.

    `words(n)` gives the first n words of an endless sequence. One encoding when each word is one
    token, as with most tokenizers; a handful otherwise. Raises UserError when no text was found.
    """
    n_words, exact = _longest_within(words, joiner, n_tokens, tokenizer)
    if exact is not None:
        return exact
    for kept in dict.fromkeys((n_words, n_words - 1, n_words - 2, 0)):
        if kept < 0:
            continue
        base = joiner.join(words(kept))
        for ending in _endings(words(kept + _N_FILLERS)[kept:], joiner, n_tokens - tokenizer.count(base)):
            candidate = base + ending if kept else ending.lstrip()
            if tokenizer.count(candidate) == n_tokens:
                return candidate
    raise UserError(
        f"the tokenizer found no text of exactly {n_tokens} tokens; "
        "ask for another `input_tokens`, or leave `tokenizer` out"
    )


def _longest_within(
    words: Callable[[int], list[str]], joiner: str, n_tokens: int, tokenizer: Tokenizer
) -> tuple[int, str | None]:
    """(n, text): n words have exactly `n_tokens` tokens, and are `text`; or text is None and n is
    the largest number found whose words have fewer.

    Secant steps from the tokens per word seen so far, kept inside the bracket known by then.
    """
    low, high = 0, 4 * n_tokens + _N_FILLERS
    n_words = n_tokens
    for _ in range(_MAX_ROUNDS):
        text = joiner.join(words(n_words))
        count = tokenizer.count(text)
        if count == n_tokens:
            return n_words, text
        if count > n_tokens:
            high = n_words
        else:
            low = n_words
        if high - low <= 1:
            break
        step = round((n_tokens - count) * n_words / max(count, 1))
        n_words = max(low + 1, min(high - 1, n_words + step))
    return low, None


def _endings(following: list[str], joiner: str, n_missing: int) -> Iterator[str]:
    """What may add `n_missing` tokens: short words, the next words cut short, letters. None ends
    in a space, which chat templates strip."""
    if n_missing < 1:
        return
    for filler in dict.fromkeys(following):
        yield joiner + joiner.join([filler] * n_missing)
    tail = joiner + joiner.join(following[:3])
    yield from (tail[:n] for n in range(1, len(tail)) if not tail[n - 1].isspace())
    for letter in string.ascii_lowercase:
        yield f" {letter}" * n_missing
        yield letter * n_missing
