from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

from tests.fakes.summaries import HOSTILE_NAME, all_failed, level, repeated, run_meta, run_summary
from tests.report.golden import assert_golden

from enginebench.model.summary import Summary, TargetSummary
from enginebench.report.html import html, page

PLOTLY = "/* plotly */"


class Parsed(HTMLParser):
    """Elements with their attributes, the text outside scripts and styles, and what was left open."""

    VOID = frozenset({"meta", "br", "line", "circle", "rect", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data


def test_the_body_of_the_report() -> None:
    text = page(run_summary(), run_meta(), PLOTLY)

    body = text[text.index("<body>") : text.index('<script type="application/json"')]

    assert_golden("report.html", body)


def test_plotly_is_embedded_once_and_nothing_is_fetched() -> None:
    text = html(run_summary(), run_meta())

    assert text.count("* plotly.js v") == 1
    assert len(text) < 6_000_000
    parsed = Parsed(page(run_summary(), run_meta(), PLOTLY))
    for tag, attributes in parsed.elements:
        assert not {"src", "href", "action", "data"} & attributes.keys(), (tag, attributes)


def test_elements_are_closed_where_they_were_opened() -> None:
    assert Parsed(page(repeated(run_summary()), run_meta(), PLOTLY)).open == []


def test_hostile_names_are_shown_as_text_and_never_run() -> None:
    parsed = Parsed(page(run_summary(), run_meta(), PLOTLY))

    assert len(parsed.scripts) == 4
    assert not any("alert(1)</script" in script for script in parsed.scripts)
    assert HOSTILE_NAME in parsed.text
    assert "\x1b" not in parsed.text
    assert "\u202e" not in parsed.text


def test_an_attribute_cannot_be_left_by_a_name() -> None:
    target = replace(run_summary().targets[0], name='" onmouseover="alert(3)')

    parsed = Parsed(page(replace(run_summary(), targets=(target,)), run_meta(), PLOTLY))

    assert not any("onmouseover" in attributes for _, attributes in parsed.elements)


def test_the_figures_are_data_that_a_script_reads() -> None:
    figures = json.loads(Parsed(page(run_summary(), run_meta(), PLOTLY)).scripts[1])

    assert [figure["id"] for figure in figures] == [
        f"{name}-concurrency" for name in ("throughput", "speed", "ttft", "icl", "tpot", "e2e")
    ]


def test_every_shown_number_carries_its_exact_value() -> None:
    target = run_summary().targets[0]
    parsed = Parsed(page(replace(run_summary(), targets=(target,)), run_meta(), PLOTLY))

    found = [
        a["data-value"] for tag, a in parsed.elements if tag == "td" and a.get("data-column") == "ttft-p50"
    ]

    assert [float(value or "nan") for value in found] == [
        lv.metrics["ttft"].stats["p50"].value for lv in target.levels
    ]


def test_the_answer_comes_before_the_charts_and_the_charts_before_the_tables() -> None:
    text = page(run_summary(), run_meta(), PLOTLY)

    order = [
        text.index(f'id="{part}"')
        for part in (
            "answer",
            "charts",
            "numbers",
            "checks",
            "errors",
            "environment",
            "reproduce",
            "definitions",
        )
    ]
    assert order == sorted(order)


def test_a_run_without_a_level_has_a_page_without_charts() -> None:
    target = TargetSummary("vllm", "vLLM", None, "chat", "port 8000 is taken", ())
    summary = Summary(1, "enginebench", "x", "failed", "", "bench-01", (target,), ("a note",))

    parsed = Parsed(page(summary, {}, PLOTLY))

    assert [PLOTLY in script for script in parsed.scripts] == [False]
    assert "port 8000 is taken" in parsed.text
    assert "This run is not complete: a target failed" in parsed.text
    assert "a note" in parsed.text
    assert "bench-01" in parsed.text


def test_a_run_in_which_all_failed_shows_no_number() -> None:
    target = replace(run_summary().targets[0], levels=(all_failed(level(8, 10, 20)),))

    text = page(replace(run_summary(), targets=(target,)), run_meta(), PLOTLY)

    assert "vllm has no throughput to give: 332 of 332 requests failed." in text
    assert set(re.findall(r'data-value="([^"]*)"', text)) == {"0", "332"}  # ok and failed


def test_more_targets_than_colours_differ_by_their_dash() -> None:
    target = run_summary().targets[0]
    many = tuple(replace(target, name=f"t{i}") for i in range(7))

    figures = json.loads(Parsed(page(replace(run_summary(), targets=many), {}, PLOTLY)).scripts[1])

    first, *_, last = (trace for trace in figures[0]["figure"]["data"])
    assert first["marker"]["symbol"] == last["marker"]["symbol"]
    assert first["line"]["dash"] != last["line"]["dash"]


def test_repeats_show_their_span_under_each_number() -> None:
    parsed = Parsed(page(repeated(run_summary(), (1.0, 1.1, 0.9)), run_meta(), PLOTLY))

    assert "2,060 to 2,510" in parsed.text
    assert "median of 3 repeats, the smallest and the largest below it" in parsed.text
