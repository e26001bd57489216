"""Every key knows its place; YAML 1.2 scalars; JSON reads; faults say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginebench.catalog.yaml_source import parse_value, parse_yaml, read_yaml, write_yaml
from enginebench.errors import ConfigError, Place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1", 1),
        ("-0x10", "-0x10"),
        ("0x10", 16),
        ("007", 7),
        (".5", 0.5),
        ("-.inf", float("-inf")),
        ("true", True),
        ("False", False),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("1_000", "1_000"),
        ("=", "="),
        ("~", None),
        ("", None),
        ("''", ""),
        ("'1'", "1"),
        ("[1, [2, {a: b}]]", [1, [2, {"a": "b"}]]),
        ("!!str 1", "1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_a_scalar_means_what_it_looks_like(text: str, value: object) -> None:
    read = parse_value(text, "--set x")
    assert read == value
    assert type(read) is type(value)


def test_keys_are_text_whatever_they_look_like() -> None:
    assert parse_yaml("on: 1\ntrue: 2\n3: 4\nnull: 5\n", "f").data == {"on": 1, "true": 2, "3": 4, "null": 5}


DOCUMENT = """\
# a comment
name: x
targets:
  - name: a
    options: {threads: 4, list: [1, 2]}
  - name: b
last: &anchor {k: v}
again: *anchor
"""


@pytest.mark.parametrize(
    ("loc", "line", "column"),
    [
        ((), 2, 1),
        (("name",), 2, 1),
        (("targets",), 3, 1),
        (("targets", 0), 4, 5),
        (("targets", 0, "name"), 4, 5),
        (("targets", 0, "options", "list"), 5, 27),
        (("targets", 0, "options", "list", 1), 5, 37),
        (("targets", 1, "name"), 6, 5),
        (("again",), 8, 1),
        (("targets", 1, "no", "such"), 6, 5),
        (("nowhere", 3), 2, 1),
    ],
)
def test_a_key_or_item_has_its_place(loc: tuple[str | int, ...], line: int, column: int) -> None:
    assert parse_yaml(DOCUMENT, "f.yaml").place(loc) == Place("f.yaml", line, column)


def test_json_on_one_line_reads_with_places() -> None:
    source = parse_yaml('{"name":"x","load":{"levels":[1,8]},"smile":"\\ud83d\\ude00"}', "f.json")
    assert source.data == {"name": "x", "load": {"levels": [1, 8]}, "smile": "\N{GRINNING FACE}"}
    assert source.place(("load", "levels", 1)) == Place("f.json", 1, 33)


def test_json_may_be_indented_with_tabs() -> None:
    source = parse_yaml('{\n\t"a": 1,\n\t"b": "x\\ty"\n}\n', "f.json")
    assert source.data == {"a": 1, "b": "x\ty"}
    assert source.place(("b",)) == Place("f.json", 3, 2)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=20), JSON_VALUES, max_size=4))
def test_what_json_writes_reads_the_same(data: dict[str, Any]) -> None:
    assert parse_yaml(json.dumps(data), "f").data == data


PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(PRINTABLE, PRINTABLE | st.integers() | st.booleans() | st.none(), max_size=4))
def test_what_we_write_reads_the_same(data: dict[str, Any]) -> None:
    assert parse_yaml(write_yaml(data), "f").data == data


@pytest.mark.parametrize(
    "text", ["1e3", "0o17", "on", "1:30", "~", "2026-01-01", "0x1f", "null", "1_000", ""]
)
def test_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    assert parse_yaml(write_yaml({"x": text}), "f").data == {"x": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f:1:1: the file is empty"),
        ("# only a comment\n", "f:1:1: the file is empty"),
        ("- 1\n", "f:1:1: expected `key: value` lines at the top of the file"),
        ("hello\n", "f:1:1: expected `key: value` lines at the top of the file"),
        ("a: 1\nb: 2\na: 3\n", "f:3:1: key 'a' stands twice (first at line 1)"),
        ("a:\n  b: 1\n  b: 2\n", "f:3:3: key 'b' stands twice (first at line 2)"),
        ('{"a": 1, "a": 2}', "f:1:10: key 'a' stands twice (first at line 1)"),
        (
            "a: 1\n\tb: 2\n",
            "f:2:1: YAML does not allow a tab here; use spaces (while scanning for the next token, "
            "found character '\\t' that cannot start any token)",
        ),
        (
            "a: b: c\n",
            "f:1:5: a value that holds ': ' needs quotes, and keys need equal indent "
            "(mapping values are not allowed here)",
        ),
        (
            "a: 1\nb: 'x\n",
            "f:3:1: a quote or bracket is opened and never closed "
            "(while scanning a quoted scalar, found unexpected end of stream)",
        ),
        (
            "a:\n  b: 1\n c: 2\n",
            "f:3:2: the indent of this line matches no line above it (while parsing a block mapping, "
            "expected <block end>, but found '<block mapping start>')",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "f:2:1: only one document to a file: remove the `---` and what follows it "
            "(expected a single document in the stream, but found another document)",
        ),
        (
            "a: *b\n",
            "f:1:4: a value that starts with * needs quotes (found undefined alias 'b')",
        ),
        ("a: &x [*x]\n", "f:1:4: an alias refers to the value it is part of"),
        ("a: !mine 1\n", "f:1:4: the tag !mine is not supported; remove it"),
        (
            "a: !!python/object/apply:os.system [x]\n",
            "f:1:4: the tag tag:yaml.org,2002:python/object/apply:os.system is not supported; remove it",
        ),
        ("a: !!int x\n", "f:1:4: 'x' is not a value of type int"),
        ('{"a": "\\ud83d"}', "f:1:7: half a surrogate pair is not text"),
        ("? [1]\n: 2\n", "f:1:3: a key must be plain text"),
        ("a: 1\nb: \x01\n", "f:2:4: not YAML: a control character stands here"),
        ("a: " + "[" * 500, "f:1:1: nested too deeply"),
    ],
)
def test_a_fault_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "f")
    assert str(caught.value) == message


def test_a_byte_order_mark_is_not_content(tmp_path: Path) -> None:
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfname: x\r\nb: 2\r\n")
    assert read_yaml(file).data == {"name": "x", "b": 2}


def test_a_file_that_is_not_text_says_so(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes("a: é".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.yaml is not UTF-8 text"):
        read_yaml(file)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.yaml: No such file"):
        read_yaml(tmp_path / "none.yaml")
