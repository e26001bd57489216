"""Request i of a workload: a pure function of (workload, seed, i), the same on every machine.

All randomness comes from hashes, not from a generator with state: request 4,000,000 costs no more
than request 0, and no library's stream can change under a stored seed. The text is random words,
not sentences: enough for engines whose speed depends on lengths alone, not for measuring
speculative decoding, whose acceptance depends on the text.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np

from enginebench.model.request import Request
from enginebench.model.scenario import Workload
from enginebench.workload.fitting import Tokenizer, fit
from enginebench.workload.lengths import token_count
from enginebench.workload.words import JOINER, WORDS

_MASK64 = (1 << 64) - 1
__all__ = ["Tokenizer", "make_request"]

_WORDS = {language: np.array(words, dtype=object) for language, words in WORDS.items()}


def make_request(workload: Workload, seed: int, seq: int, tokenizer: Tokenizer | None = None) -> Request:
    """Request `seq`. About 25 us for 512 tokens without a tokenizer, one encoding more with one.

    With a tokenizer the prompt encodes to exactly the asked number of tokens; without one it has
    that many words of workload/words.py, one token each. A server counts its chat template (and a
    leading BOS token) on top. Workloads of other lengths or languages have other prompts, even under
    one seed.

    Raises UserError when no text of the asked length exists for this tokenizer.
    """
    key = _key(workload, seed)
    lengths = hashlib.blake2b(b"%s/%d" % (key, seq), digest_size=16).digest()
    input_uniform, output_uniform = ((n + 0.5) / 2**52 for n in _52_bits(lengths))
    n_tokens = token_count(workload.input_tokens, input_uniform)
    prompt = _prompt(workload, key, seq, n_tokens, tokenizer)
    return Request(
        seq=seq,
        prompt=prompt,
        prompt_sha256=hashlib.sha256(prompt.encode()).hexdigest(),
        asked_prompt_tokens=n_tokens,
        asked_output_tokens=token_count(workload.output_tokens, output_uniform),
    )


def _prompt(workload: Workload, key: bytes, seq: int, n_tokens: int, tokenizer: Tokenizer | None) -> str:
    known, joiner = _WORDS[workload.language], JOINER[workload.language]
    nonce = _nonce(key, seq, workload.language) if workload.unique_prompts else []
    stream = hashlib.shake_128(b"words/%s/%d" % (key, seq if workload.unique_prompts else 0))

    def words(n: int) -> list[str]:
        # A longer digest begins with the shorter one, so asking for more words keeps the first.
        picks = np.frombuffer(stream.digest(2 * max(0, n - len(nonce))), "<u2") & (len(known) - 1)
        return [*nonce[:n], *known[picks].tolist()]

    return joiner.join(words(n_tokens)) if tokenizer is None else fit(words, joiner, n_tokens, tokenizer)


def _nonce(key: bytes, seq: int, language: str) -> list[str]:
    """Words that no other seq of this workload begins with: 64 bits, spelt in words.

    The bits are splitmix64's finaliser (Steele, Lea, Flood 2014) of seq + a constant: a bijection,
    so different seqs give different words, and neighbours already differ in the first.
    """
    (start,) = struct.unpack("<Q", hashlib.blake2b(key, digest_size=8).digest())
    bits = (seq + start) & _MASK64
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK64
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK64
    bits ^= bits >> 31
    words = WORDS[language]
    width = len(words).bit_length() - 1
    return [words[bits >> at & len(words) - 1] for at in range(0, 64, width)]


def _key(workload: Workload, seed: int) -> bytes:
    asked, answered = (
        f"{count.kind} {float(count.mean)} {float(count.stdev)} {count.low} {count.high}"
        for count in (workload.input_tokens, workload.output_tokens)
    )
    return f"{seed}/{workload.language}/{asked}/{answered}".encode()


def _52_bits(digest: bytes) -> tuple[int, int]:
    # One bit less than a float holds, so that (n + 0.5) / 2**52 is never rounded up to 1.
    first, second = struct.unpack("<QQ", digest)
    return first >> 12, second >> 12
