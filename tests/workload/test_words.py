from __future__ import annotations

import pytest

from enginebench.workload.words import JOINER, WORDS


@pytest.mark.parametrize("language", sorted(WORDS))
def test_a_word_list_is_a_power_of_two_long_and_has_no_word_twice(language: str) -> None:
    words = WORDS[language]
    assert len(words) & (len(words) - 1) == 0
    assert len(set(words)) == len(words) >= 256
    assert not any(word.isspace() or " " in word or not word for word in words)


def test_every_language_has_a_joiner() -> None:
    assert set(JOINER) == set(WORDS) == {"english", "chinese", "code"}
