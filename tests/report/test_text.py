from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginebench.report.text import (
    clean,
    clean_lines,
    listed,
    markdown_code,
    markdown_text,
    number,
    some,
    whole,
)

NUMBERS = [
    (0, "0"),
    (0.00012345, "0.000123"),
    (0.1, "0.100"),
    (0.99949, "0.999"),
    (0.9996, "1.00"),
    (1, "1.00"),
    (9.999, "10.0"),
    (45.04, "45.0"),
    (99.96, "100"),
    (123.4, "123"),
    (999.6, "1,000"),
    (1234.5, "1,230"),
    (12_345, "12,300"),
    (1_234_567, "1,230,000"),
    (-12.345, "-12.3"),
    (0.00001234, "1.23e-05"),
    (1.5e10, "1.50e+10"),
]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_a_number_has_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(1e-4, 1e8))
def test_a_number_is_within_half_a_percent_of_its_text(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=0.005)


def test_counts_keep_all_their_digits() -> None:
    assert whole(12_345) == "12,345"
    assert whole(8.0) == "8"
    assert whole(2.5) == "2.5"
    assert some(1, "repeat") == "1 repeat"
    assert some(1204, "request") == "1,204 requests"


def test_words_are_listed_as_in_a_sentence() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"


HOSTILE = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b[2J\x1b[1;1Hhome", "home"),
    ("\x9b31mred", "red"),
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bPq#0\x1b\\after", "after"),
    ("bell\x07 back\x08space", "bell backspace"),
    ("one\r\ntwo\nthree\u2028four\x85five", "one two three four five"),
    ("a\tb", "a b"),
    ("abc\u202egnp.exe", "abcgnp.exe"),
    ("\u2066isolate\u2069", "isolate"),
    ("lone \ud800 surrogate", "lone \ufffd surrogate"),
    ("naïve 模型 👩‍💻", "naïve 模型 👩‍💻"),
    ("  many   spaces ", "many spaces"),
]


@pytest.mark.parametrize(("foreign", "cleaned"), HOSTILE)
def test_foreign_text_loses_what_steers_a_terminal(foreign: str, cleaned: str) -> None:
    assert clean(foreign) == cleaned


@given(st.text())
def test_cleaned_text_holds_no_control_character(text: str) -> None:
    cleaned = clean(text)

    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029\u202e" for c in cleaned)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned


def test_lines_of_a_log_stay_lines_without_the_empty_ones() -> None:
    assert clean_lines("ERROR\x1b[0m\n\n  at\tline 3\r\n \n") == ["ERROR", "  at    line 3"]


def test_markdown_text_shows_markup_as_it_is() -> None:
    assert markdown_text("*a* `b` [c](d) | <b>&amp;") == ("\\*a\\* \\`b\\` \\[c\\](d) \\| &lt;b&gt;&amp;amp;")
    assert markdown_text("_emphasis_ but http_429") == "\\_emphasis\\_ but http_429"


def test_a_code_span_outlasts_backticks_and_stays_in_its_table_cell() -> None:
    assert markdown_code("plain") == "`plain`"
    assert markdown_code("a ` b `` c") == "```a ` b `` c```"
    assert markdown_code("`edge`") == "`` `edge` ``"
    assert markdown_code("a|b") == "`a\\|b`"
