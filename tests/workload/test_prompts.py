"""Requests are pure, unique from their first words, and as long as asked."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import replace

import pytest

from enginebench.errors import UserError
from enginebench.model.plan import CELL_SEQ, WARMUP_SEQ
from enginebench.model.scenario import TokenCount, Workload
from enginebench.workload.prompts import make_request
from enginebench.workload.words import WORDS

LANGUAGES = ("english", "chinese", "code")


def fixed(n: int) -> TokenCount:
    return TokenCount("fixed", n)


def split(prompt: str, language: str) -> list[str]:
    return list(prompt) if language == "chinese" else prompt.split(" ")


def test_the_same_request_comes_out_every_time() -> None:
    assert make_request(Workload(), 7, 123) == make_request(Workload(), 7, 123)


def test_a_stored_seed_gives_the_same_prompt_for_ever() -> None:
    """Changing this text breaks parity with stored runs: it needs a note in the changelog."""
    request = make_request(Workload(input_tokens=fixed(12)), 7, 0)
    assert request.prompt == GOLDEN
    assert request.prompt_sha256 == hashlib.sha256(GOLDEN.encode()).hexdigest()


GOLDEN = "mid cards days basic view count you true states why growth existing"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 512])
def test_without_a_tokenizer_a_prompt_has_one_listed_word_for_each_token(language: str, n: int) -> None:
    request = make_request(Workload(language=language, input_tokens=fixed(n)), 7, 3)  # type: ignore[arg-type]
    words = split(request.prompt, language)
    assert len(words) == n == request.asked_prompt_tokens
    assert set(words) <= set(WORDS[language])


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_requests_begin_with_the_same_eight_words(language: str) -> None:
    workload = Workload(language=language, input_tokens=fixed(8))  # type: ignore[arg-type]
    seqs = [cell * CELL_SEQ + phase + i for cell in range(4) for phase in (0, WARMUP_SEQ) for i in range(500)]
    prompts = {make_request(workload, 7, seq).prompt for seq in seqs}
    assert len(prompts) == len(seqs) == 4000


def test_neighbouring_requests_differ_in_their_first_word() -> None:
    first = [make_request(Workload(input_tokens=fixed(16)), 7, seq).prompt.split()[0] for seq in range(200)]
    assert sum(a == b for a, b in itertools.pairwise(first)) <= 2
    assert len(set(first)) > 150


def test_another_seed_or_another_length_gives_other_prompts() -> None:
    one = make_request(Workload(input_tokens=fixed(64)), 7, 0).prompt
    assert not make_request(Workload(input_tokens=fixed(128)), 7, 0).prompt.startswith(one[:20])
    assert not make_request(Workload(input_tokens=fixed(64)), 8, 0).prompt.startswith(one[:20])


def test_repeated_prompts_on_request_are_equal_so_that_a_prefix_cache_is_hit() -> None:
    workload = Workload(input_tokens=fixed(32), unique_prompts=False)
    assert make_request(workload, 7, 0).prompt == make_request(workload, 7, 9).prompt
    assert make_request(workload, 7, 0).prompt != make_request(workload, 8, 0).prompt


def test_repeated_prompts_of_unequal_length_share_their_beginning() -> None:
    workload = Workload(input_tokens=TokenCount("uniform", 30, low=10, high=50), unique_prompts=False)
    prompts = sorted((make_request(workload, 7, i).prompt for i in range(20)), key=len)
    assert all(prompts[-1].startswith(prompt) for prompt in prompts)


def test_input_and_output_lengths_are_drawn_apart() -> None:
    spread = TokenCount("uniform", 50, low=1, high=100)
    made = [make_request(Workload(input_tokens=spread, output_tokens=spread), 7, i) for i in range(400)]
    agree = sum((r.asked_prompt_tokens > 50) == (r.asked_output_tokens > 50) for r in made)
    assert 150 < agree < 250


class WordTokenizer:
    """One token for each word, `per_word` for each long one."""

    def __init__(self, long_word: int = 1) -> None:
        self.long_word = long_word
        self.n_calls = 0

    def count(self, text: str) -> int:
        self.n_calls += 1
        return sum(self.long_word if len(word) > 4 else 1 for word in text.split())


class MergingLetters:
    """Every character is a token, but "th" and "in" merge: decoding ids and encoding again changes
    the count, the fault that makes other tools miss the asked length."""

    def count(self, text: str) -> int:
        return len(re.sub("th|in", "#", text))


class Pairs:
    """Two characters are one token: no separator, no words."""

    def count(self, text: str) -> int:
        return (len(text.encode()) + 1) // 2


class Hopeless:
    def count(self, text: str) -> int:
        return 1


def test_when_each_word_is_a_token_one_encoding_is_enough() -> None:
    tokenizer = WordTokenizer()
    make_request(Workload(), 7, 0, tokenizer)
    assert tokenizer.n_calls == 1


@pytest.mark.parametrize(
    "tokenizer", [WordTokenizer(), WordTokenizer(2), WordTokenizer(5), MergingLetters(), Pairs()]
)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("n", [1, 2, 3, 64, 257])
def test_with_a_tokenizer_every_prompt_has_exactly_the_asked_length(tokenizer, language, n) -> None:  # type: ignore[no-untyped-def]
    workload = Workload(language=language, input_tokens=fixed(n))
    prompts = [make_request(workload, 7, seq, tokenizer).prompt for seq in range(20)]
    assert {tokenizer.count(prompt) for prompt in prompts} == {n}
    assert not any(prompt != prompt.strip() for prompt in prompts)


def test_a_fitted_prompt_still_begins_with_its_unique_words() -> None:
    workload = Workload(input_tokens=fixed(300))
    fitted = make_request(workload, 7, 5, MergingLetters()).prompt
    assert make_request(workload, 7, 5).prompt.startswith(fitted[:200])


def test_an_impossible_length_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UserError, match=r"no text of exactly 40 tokens; .* leave `tokenizer` out"):
        make_request(Workload(input_tokens=fixed(40)), 7, 0, Hopeless())


def test_only_the_workload_decides_not_how_it_was_spelt() -> None:
    assert make_request(Workload(input_tokens=TokenCount("fixed", 64.0)), 7, 1) == make_request(
        replace(Workload(), input_tokens=TokenCount("fixed", 64)), 7, 1
    )
