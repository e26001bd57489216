"""The HTML report in a real browser: what it draws, what it shows, what it asks of the network."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Page, chromium
from tests.fakes.summaries import HOSTILE_NAME, LEVELS, repeated, run_meta, run_summary

from enginebench.analysis.summary import to_plain
from enginebench.report.html import html
from enginebench.report.text import number

pytestmark = pytest.mark.browser

CHARTS = {"throughput": "output_throughput", "ttft": "ttft", "icl": "icl", "tpot": "tpot", "e2e": "e2e"}
TTFT = "document.getElementById('chart-ttft-concurrency')"
WIDTHS = (390, 768, 1280)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("chromium") / "profile") as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html(run_summary(), run_meta()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """summary.json, read back."""
    found: dict[str, Any] = json.loads(json.dumps(to_plain(run_summary())))
    return found


def complaints(page: Page) -> list[Any]:
    return [
        *page.seen("Runtime.exceptionThrown"),
        *(
            call
            for call in page.seen("Runtime.consoleAPICalled")
            if call["type"] in ("error", "warning", "assert")
        ),
        *page.seen("Log.entryAdded"),
        *page.seen("Page.javascriptDialogOpening"),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_opens_without_an_error_and_asks_nothing_of_the_network(
    browser: Page, report: Path, scheme: str
) -> None:
    browser.open(report, 1280, scheme)

    assert complaints(browser) == []
    urls = [request["request"]["url"] for request in browser.seen("Network.requestWillBeSent")]
    assert urls[0] == report.as_uri()
    assert all(url.startswith(("data:", "blob:")) for url in urls[1:])


def test_a_request_that_something_in_the_page_wanted_would_be_refused(browser: Page, report: Path) -> None:
    browser.open(report, 1280)

    refused = browser.evaluate(
        "new Promise(done => {"
        " addEventListener('securitypolicyviolation', event => done(event.blockedURI));"
        " new Image().src = 'http://127.0.0.1:9/pixel.png'; })"
    )

    assert refused == "http://127.0.0.1:9/pixel.png"


def test_every_chart_is_drawn_from_the_numbers_of_summary_json(
    browser: Page, report: Path, plain: dict[str, Any]
) -> None:
    browser.open(report, 1280)

    assert browser.evaluate("document.documentElement.dataset.drawn") == "screen"
    for name, metric in CHARTS.items():
        drawn = browser.evaluate(
            f"document.getElementById('chart-{name}-concurrency').data"
            ".filter(trace => trace.meta.role === 'line')"
            ".map(trace => [Array.from(trace.x), Array.from(trace.y)])"
        )
        stat = "value" if metric == "output_throughput" else "p50"
        assert drawn == [
            [list(LEVELS), [level["metrics"][metric][stat]["value"] for level in target["levels"]]]
            for target in plain["targets"]
            if target["levels"]
        ]
    n_markers = browser.evaluate("document.querySelectorAll('.chart svg .points path').length")
    assert n_markers == 6 * 2 * len(LEVELS)


def test_every_shown_number_is_that_of_summary_json(
    browser: Page, report: Path, plain: dict[str, Any]
) -> None:
    browser.open(report, 1280)

    shown = browser.evaluate(
        "[...document.querySelectorAll('#numbers tbody')].map(body => [...body.rows].map(row =>"
        " [...row.cells].slice(1).map(cell =>"
        "  [cell.dataset.column, cell.innerText, cell.dataset.value ?? null])))"
    )

    targets = [target for target in plain["targets"] if target["levels"] for _ in ("throughput", "latency")]
    n_compared = 0
    for target, table in zip(targets, shown, strict=True):
        for level, row in zip(target["levels"], table, strict=True):
            for column, text, value in row:
                metric, _, stat = column.rpartition("-")
                if metric == "requests":
                    continue
                found = level["metrics"][metric]
                expected = found[stat]["value"]
                n_compared += 1
                if expected is None:
                    assert (text, value) == (f"n/a (n={found['n']})" if found["n"] else "n/a", None)
                else:
                    assert (text, float(value)) == (number(expected), expected)
    assert n_compared == 2 * len(LEVELS) * 20


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n_repeats", [1, 3])
def test_nothing_is_wider_than_the_window(browser: Page, tmp_path: Path, width: int, n_repeats: int) -> None:
    path = tmp_path / "report.html"
    summary = repeated(run_summary(), (1.0, 1.2, 0.8)[:n_repeats])
    path.write_text(html(summary, run_meta()), encoding="utf-8")

    browser.open(path, width)

    assert browser.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width, width]
    too_wide = browser.evaluate(
        "[...document.querySelectorAll('.chart')].filter(chart =>"
        " chart.querySelector('svg').getBoundingClientRect().right > innerWidth).map(chart => chart.id)"
    )
    assert too_wide == []


def test_a_hostile_name_is_shown_and_not_run(browser: Page, report: Path) -> None:
    browser.open(report, 1280)

    assert browser.evaluate("document.querySelector('.card.s1 .name').innerText") == HOSTILE_NAME
    assert browser.evaluate("document.scripts.length") == 3
    assert browser.seen("Page.javascriptDialogOpening") == []


def test_charts_follow_the_scheme_of_the_reader_while_the_page_is_open(browser: Page, report: Path) -> None:
    def colours_once_paper_is(colour: str) -> Any:
        browser.evaluate(
            "new Promise(done => { const look = () =>"
            f" {TTFT}.layout.paper_bgcolor === '{colour}' ? done() : requestAnimationFrame(look); look(); }})"
        )
        return browser.evaluate(
            f"[getComputedStyle(document.body).backgroundColor, {TTFT}.data[2].line.color]"
        )

    browser.open(report, 1280, "light")
    light = colours_once_paper_is("#fcfcfb")
    browser.prefer("dark")
    dark = colours_once_paper_is("#101317")
    browser.prefer("light")

    assert light == ["rgb(252, 252, 251)", "#0068a8"]
    assert dark == ["rgb(16, 19, 23)", "#5cb8f2"]
    assert colours_once_paper_is("#fcfcfb") == light


def test_paper_is_light_and_has_the_scenario_in_full(browser: Page, report: Path) -> None:
    browser.open(report, 1280, "dark")
    browser.evaluate(
        "window.seen = [], addEventListener('beforeprint', () =>"
        f" seen.push({TTFT}.layout.paper_bgcolor, document.querySelector('details').open)), 0"
    )

    pdf = browser.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)

    assert base64.b64decode(pdf["data"]).startswith(b"%PDF-")
    assert browser.evaluate("seen") == ["#fcfcfb", True]
    assert browser.evaluate(f"{TTFT}.layout.paper_bgcolor") == "#101317"
    assert complaints(browser) == []
