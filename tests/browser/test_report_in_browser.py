"""The HTML report in a real browser: what it draws, what it shows, what it asks of the network."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Page, chromium
from tests.fakes.details import run_details, wide_details, wide_summary
from tests.fakes.summaries import HOSTILE_NAME, LEVELS, repeated, run_meta, run_summary

from enginebench.analysis.summary import to_plain
from enginebench.model.summary import Summary
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
    path.write_text(html(run_summary(), run_meta(), run_details()), encoding="utf-8")
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
    browser.until_drawn()

    assert complaints(browser) == []
    urls = [request["request"]["url"] for request in browser.seen("Network.requestWillBeSent")]
    assert urls[0] == report.as_uri()
    assert all(url.startswith(("data:", "blob:")) for url in urls[1:])


def test_a_request_that_something_in_the_page_wanted_would_be_refused(browser: Page, report: Path) -> None:
    browser.open(report, 1280)
    browser.until_drawn()

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
    browser.until_drawn()

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
    n_markers = browser.evaluate("document.querySelectorAll('#charts .chart svg .points path').length")
    assert n_markers == 6 * 2 * len(LEVELS)


def test_every_shown_number_is_that_of_summary_json(
    browser: Page, report: Path, plain: dict[str, Any]
) -> None:
    browser.open(report, 1280)
    browser.until_drawn()

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


def with_long_check(summary: Summary) -> Summary:
    """So that the checks of a narrow screen scroll."""
    check = {"name": "a_check_with_a_name_as_long_as_any", "verdict": "pass", "value": 0.0, "advice": ""}
    targets = tuple(
        replace(t, levels=tuple(replace(lv, checks=(*lv.checks, check)) for lv in t.levels))
        for t in summary.targets
    )
    return replace(summary, targets=targets)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n_repeats", [1, 3])
def test_nothing_is_wider_than_the_window(browser: Page, tmp_path: Path, width: int, n_repeats: int) -> None:
    path = tmp_path / "report.html"
    summary = repeated(with_long_check(run_summary()), (1.0, 1.2, 0.8)[:n_repeats])
    path.write_text(html(summary, run_meta(), run_details()), encoding="utf-8")

    browser.open(path, width)
    browser.until_drawn()

    assert browser.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width, width]
    too_wide = browser.evaluate(
        "[...document.querySelectorAll('.chart')].filter(chart =>"
        " chart.querySelector('svg').getBoundingClientRect().right > innerWidth).map(chart => chart.id)"
    )
    assert too_wide == []


def test_a_hostile_name_is_shown_and_not_run(browser: Page, report: Path) -> None:
    browser.open(report, 1280)
    browser.until_drawn()

    assert browser.evaluate("document.querySelector('.card.s1 .name').innerText") == HOSTILE_NAME
    assert browser.evaluate("document.scripts.length") == 4
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
    browser.until_drawn()
    light = colours_once_paper_is("#fcfcfb")
    browser.prefer("dark")
    dark = colours_once_paper_is("#101317")
    browser.prefer("light")

    assert light == ["rgb(252, 252, 251)", "#0068a8"]
    assert dark == ["rgb(16, 19, 23)", "#5cb8f2"]
    assert colours_once_paper_is("#fcfcfb") == light


def test_paper_is_light_and_has_the_scenario_in_full(browser: Page, report: Path) -> None:
    browser.open(report, 1280, "dark")
    browser.until_drawn()
    browser.evaluate(
        "window.seen = [], addEventListener('beforeprint', () =>"
        f" seen.push({TTFT}.layout.paper_bgcolor, document.querySelector('details').open)), 0"
    )

    pdf = browser.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)

    browser.until_drawn()
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF-")
    assert browser.evaluate("seen") == ["#fcfcfb", True]
    assert browser.evaluate(f"{TTFT}.layout.paper_bgcolor") == "#101317"
    assert complaints(browser) == []


FIRST_TABLE = "document.querySelector('#numbers table.numbers')"


def column(page: Page, name: str) -> list[str]:
    found: list[str] = page.evaluate(
        f"[...{FIRST_TABLE}.tBodies[0].rows].map(row =>"
        f" row.querySelector('[data-column=\"{name}\"]').firstChild.textContent)"
    )
    return found


def press(page: Page, heading: int) -> str:
    """Presses the heading of a column of the first table; how it says that it is sorted."""
    found: str = page.evaluate(
        f"(() => {{ const heading = {FIRST_TABLE}.querySelector('[data-sort=\"{heading}\"]');"
        " heading.querySelector('button').click(); return heading.getAttribute('aria-sort'); })()"
    )
    return found


def test_a_table_sorts_by_number_up_and_down_with_what_is_missing_last(browser: Page, report: Path) -> None:
    browser.open(report, 1280)
    browser.until_drawn()
    names = browser.evaluate(
        f"[...{FIRST_TABLE}.tBodies[0].rows[0].cells].map(cell => cell.dataset.column ?? 'level')"
    )
    at = names.index("output_throughput-value")
    given = column(browser, "output_throughput-value")

    assert press(browser, at) == "ascending"
    up = column(browser, "output_throughput-value")
    assert press(browser, at) == "descending"
    down = column(browser, "output_throughput-value")
    assert press(browser, 0) == "ascending"

    def numbers(texts: list[str]) -> list[float]:
        return [float(text.replace(",", "")) for text in texts if not text.startswith("n/a")]

    assert numbers(up) == sorted(numbers(given))
    assert numbers(down) == sorted(numbers(given), reverse=True)
    assert len({*up} & {*down}) == len({*given})
    assert column(browser, "output_throughput-value") == given
    assert browser.evaluate(f"{FIRST_TABLE}.querySelectorAll('[aria-sort]').length") == 1


def test_missing_numbers_come_last_both_ways(browser: Page, report: Path) -> None:
    browser.open(report, 1280)
    browser.until_drawn()
    names = browser.evaluate(
        f"[...{FIRST_TABLE}.tBodies[0].rows[0].cells].map(cell => cell.dataset.column ?? 'level')"
    )
    at = names.index("per_user_tps-p99")

    for _ in range(2):
        press(browser, at)
        missing = [text.startswith("n/a") for text in column(browser, "per_user_tps-p99")]
        assert any(missing)
        assert missing == sorted(missing)


def test_the_theme_button_turns_page_and_charts_and_back(browser: Page, report: Path) -> None:
    browser.open(report, 1280, "light")
    browser.until_drawn()

    def toggled() -> Any:
        browser.evaluate("document.getElementById('theme').click()")
        browser.until_drawn()
        return browser.evaluate(
            "(() => {"
            f" return [getComputedStyle(document.body).backgroundColor, {TTFT}.layout.paper_bgcolor,"
            " document.getElementById('theme').textContent]; })()"
        )

    assert toggled() == ["rgb(16, 19, 23)", "#101317", "Light theme"]
    assert toggled() == ["rgb(252, 252, 251)", "#fcfcfb", "Dark theme"]
    assert complaints(browser) == []


def test_distributions_are_of_the_level_that_was_chosen(browser: Page, report: Path) -> None:
    browser.open(report, 1280)
    browser.until_drawn()

    def drawn() -> Any:
        return browser.evaluate(
            "document.getElementById('chart-distribution-ttft-concurrency').data"
            ".map(trace => [trace.meta.choice, trace.x[0]])"
        )

    assert drawn() == [["64", 64.0], ["64", 128.0]]
    browser.evaluate(
        "(() => { const level = document.getElementById('level'); level.value = '8';"
        " level.dispatchEvent(new Event('change')); })()"
    )
    assert drawn() == [["8", 8.0], ["8", 16.0]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_in_the_page_is_a_serious_barrier_to_a_reader(
    browser: Page, report: Path, scheme: str, width: int
) -> None:
    axe = os.environ.get("AXE_CORE")
    if not axe:
        pytest.fail("no axe-core: run scripts/test-browser, or name its axe.min.js in AXE_CORE")
    browser.open(report, width, scheme)
    browser.until_drawn()
    browser.evaluate(Path(axe).read_text(encoding="utf-8") + ";0")

    found = browser.evaluate(
        "axe.run().then(result => result.violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))"
    )

    assert found == []


def test_twenty_levels_of_three_targets_stay_small_and_take_under_two_seconds_to_open(
    browser: Page, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(html(wide_summary(), run_meta(), wide_details()), encoding="utf-8")

    # Time on the processor, so that a busy machine does not count against the page. The first opening
    # also compiles plotly, which depends on the machine more than on the page: it is printed.
    browser.call("Performance.enable", timeDomain="threadTicks")
    openings = [opening(browser, path) for _ in range(3)]
    browser.call("Performance.disable")

    print("; ".join(f"{work_s:.2f} s of work, loaded after {ms:.0f} ms" for work_s, ms in openings))
    assert path.stat().st_size < 6_000_000
    assert 0 < min(work_s for work_s, _ in openings) < 2


def opening(page: Page, path: Path) -> tuple[float, float]:
    """Work of the page's main thread in seconds, and ms on the wall clock, until it has loaded."""
    page.open(path, 1280)
    spent = {one["name"]: one["value"] for one in page.call("Performance.getMetrics")["metrics"]}
    loaded_ms = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    page.until_drawn()
    return spent["TaskDuration"], loaded_ms
