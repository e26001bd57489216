"""Charts of single requests and of time: distributions, the course of the run, failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from enginebench.model.details import SHARES, Details, Distribution, Track
from enginebench.model.summary import Summary
from enginebench.report.charts import DASHES, SYMBOLS, Chart, figure_of, plain_axis
from enginebench.report.tables import LOAD_TITLES
from enginebench.report.text import markup_text, number, some, whole

_DISTRIBUTIONS = (
    ("ttft", "TTFT", "Distribution of the time to first token"),
    ("icl", "ICL", "Distribution of the gaps between chunks"),
    ("e2e", "E2E", "Distribution of end-to-end latency"),
)
_TRACKS = (
    ("in_flight", "Requests in flight over time", "in flight", "requests sent and not yet ended"),
    ("output_throughput", "Output over time", "output (tok/s)", "output tokens of successful requests"),
    ("requests_waiting", "Requests waiting in the engine", "waiting", "as the engine tells"),
    ("kv_usage", "Use of the KV cache", "in use (%)", "share of the engine's KV cache, as it tells"),
)


def detail_charts(details: Details, summary: Summary) -> list[Chart]:
    """Those that there is anything to draw in."""
    place = {target.name: position for position, target in enumerate(summary.targets)}
    found = [
        *_distributions(details, place),
        *(_over_time(details, place, track) for track in _TRACKS),
        _failures(details, place),
    ]
    return [chart for chart in found if chart.figure["data"]]


def _distributions(details: Details, place: Mapping[str, int]) -> Iterable[Chart]:
    for load in dict.fromkeys(one.load for one in details.distributions):
        title = LOAD_TITLES.get(load, markup_text(load))
        for metric, short, heading in _DISTRIBUTIONS:
            drawn = [one for one in details.distributions if (one.load, one.metric) == (load, metric)]
            levels = sorted({one.level for one in drawn})
            yield Chart(
                f"distribution-{metric}-{load}",
                heading,
                f"share of the sample that was at most so long, at one {title}",
                figure_of(
                    [_cumulative(one, place[one.target]) for one in drawn],
                    {"title": {"text": f"{short} (ms)"}, "automargin": True, "tickformat": ","},
                    plain_axis("share (%)") | {"range": [0, 101]},
                ),
                (),
                tuple((whole(level), f"{title} {whole(level)}") for level in levels),
            )


def _cumulative(one: Distribution, position: int) -> dict[str, Any]:
    hover = [f"{100 * s:g} % within {number(v)} ms" for s, v in zip(SHARES, one.values_ms, strict=True)]
    values = {"x": list(one.values_ms), "y": [100 * share for share in SHARES], "customdata": hover}
    named = _dressed(one.target, position) | values
    named["meta"] |= {"choice": whole(one.level)}
    named["hovertemplate"] = f"%{{customdata}}<br>{some(one.n, 'sample')}"
    return named


def _over_time(details: Details, place: Mapping[str, int], about: tuple[str, str, str, str]) -> Chart:
    quantity, heading, axis, words = about
    tracks = [track for track in details.tracks if track.quantity == quantity and track.target in place]
    factor = 100 if quantity == "kv_usage" else 1
    return Chart(
        f"time-{quantity}",
        heading,
        f"{words}; means over {details.step_s:g} s",
        figure_of([_track(track, place, factor) for track in tracks], _seconds(), plain_axis(axis)),
        (),
    )


def _track(track: Track, place: Mapping[str, int], factor: float) -> dict[str, Any]:
    values = [None if value is None else factor * value for value in track.values]
    drawn = _dressed(track.target, place[track.target]) | {"x": list(track.at_s), "y": values}
    return drawn | {"hovertemplate": "%{y:,.3~g} after %{x:,.1f} s"}


def _failures(details: Details, place: Mapping[str, int]) -> Chart:
    most = max((n for one in details.failures for n in one.n), default=1)
    traces = []
    for one in details.failures:
        symbol = SYMBOLS[place[one.target] % len(SYMBOLS)]
        sizes = [7 + 17 * (n / most) ** 0.5 for n in one.n]
        traces.append(
            _dressed(one.target, place[one.target])
            | {
                "mode": "markers",
                "x": list(one.at_s),
                "y": [markup_text(one.kind)] * len(one.n),
                "customdata": [some(n, "request") for n in one.n],
                "hovertemplate": "%{y}: %{customdata} after %{x:,.1f} s",
                "marker": {"size": sizes, "symbol": symbol, "opacity": 0.75},
            }
        )
    kinds = {"automargin": True, "type": "category", "title": {"text": ""}}
    reading = f"failed requests by kind, where they ended; a larger mark is more in {details.step_s:g} s"
    return Chart("time-failures", "Failures over time", reading, figure_of(traces, _seconds(), kinds), ())


def _seconds() -> dict[str, Any]:
    return plain_axis("time since the first request (s)")


def _dressed(target: str, position: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": markup_text(target),
        "connectgaps": False,
        "line": {"width": 1.6, "dash": DASHES[position // len(SYMBOLS) % len(DASHES)]},
        "meta": {"series": position, "role": "detail"},
    }


def choices(charts: Sequence[Chart]) -> list[tuple[str, str]]:
    """What the one control above the distributions offers: every level, in rising order."""
    found = dict(choice for chart in charts for choice in chart.choices)
    return sorted(found.items(), key=lambda choice: float(choice[0].replace(",", "")))
