"""The charts of the HTML report as plain plotly figures (data and layout), without colours.

A figure here says what is drawn; `templates/report.js` gives it the colours of the page, which follow
the reader's light or dark scheme. Names go into `name` only, escaped: plotly reads some markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from enginebench.report import points
from enginebench.report.points import Point, Series, Value
from enginebench.report.tables import LOAD_TITLES, level_text, shown
from enginebench.report.text import clean, listed, markup_text, whole

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
DASHES = ("solid", "dash", "dot")
PERCENTILES = ("p50", "p90", "p95", "p99")
LOG_SCALE_FROM = 15.0
"""A latency axis is logarithmic when its largest value is so many times its smallest."""
STEPS_UP_TO = 1000.0
"""Up to this ratio a logarithmic axis is marked at 1, 2 and 5, above it at powers of ten only."""

LATENCIES = (
    ("ttft", "TTFT", "Time to first token"),
    ("icl", "ICL", "Gap between chunks"),
    ("tpot", "TPOT", "Time per output token"),
    ("e2e", "E2E", "End-to-end latency"),
)


@dataclass(frozen=True, slots=True)
class Chart:
    id: str
    title: str
    reading: str
    """What is drawn and how to read it."""
    figure: dict[str, Any]
    missing: tuple[str, ...]
    """What could not be drawn, in words."""
    choices: tuple[tuple[str, str], ...] = ()
    """Value and label of what the reader can choose to see: traces whose meta says `choice`."""


def charts(everything: Sequence[Series]) -> list[Chart]:
    """All charts, for each kind of load in turn; without any series there are none."""
    drawn = []
    for load in dict.fromkeys(series.load for series in everything):
        same = [series for series in everything if series.load == load]
        drawn += [_throughput(same, load), _speed(same, load)]
        drawn += [_latency(same, load, metric) for metric in LATENCIES]
    return drawn


def _throughput(same: Sequence[Series], load: str) -> Chart:
    traces = []
    for series in same:
        found = [points.value(point, "output_throughput", "value") for point in series.points]
        hover = [
            _hover(series, point, [f"{shown(one).text} tok/s"])
            for point, one in zip(series.points, found, strict=True)
        ]
        trace = _line(series, [p.level for p in series.points], [one.value for one in found], hover)
        traces.append(trace | _error_bars(found))
    return Chart(
        f"throughput-{load}",
        "Output throughput",
        f"output tokens a second inside the measured window, all requests together, against {_title(load)}",
        figure_of(traces, _level_axis(same, load), plain_axis("output (tok/s)")),
        _missing(same, "output_throughput", ("value",)),
    )


def _speed(same: Sequence[Series], load: str) -> Chart:
    traces = []
    for series in same:
        speeds = [points.value(point, "per_user_tps", "p50") for point in series.points]
        rates = [points.value(point, "output_throughput", "value") for point in series.points]
        hover = [
            _hover(
                series,
                point,
                [f"{shown(speed).text} tok/s per user (p50)", f"{shown(rate).text} tok/s in all"],
            )
            for point, speed, rate in zip(series.points, speeds, rates, strict=True)
        ]
        trace = _line(series, [s.value for s in speeds], [r.value for r in rates], hover)
        traces.append(trace | {"mode": "lines+markers+text", "textposition": "top right"})
    _label(traces, [[level_text(point) for point in series.points] for series in same])
    return Chart(
        f"speed-{load}",
        "Throughput against the speed of one user",
        f"each point is one level, labelled with its {_title(load)}; up and to the right is better",
        figure_of(traces, plain_axis("per user, p50 (tok/s)"), plain_axis("output (tok/s)")),
        _missing(same, "per_user_tps", ("p50",)),
    )


def _label(traces: Sequence[dict[str, Any]], labels: Sequence[Sequence[str]]) -> None:
    """Writes `text`. Neighbours too close for two labels share one, at the first of them: `16 to 64`."""
    widest, highest = (
        max((v for trace in traces for v in trace[axis] if v is not None), default=0.0) or 1.0
        for axis in ("x", "y")
    )
    for trace, names in zip(traces, labels, strict=True):
        shown_at: list[tuple[float, float, int]] = []
        trace["text"] = [""] * len(names)
        for i, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True)):
            if x is None or y is None:
                continue
            at = x / widest, y / highest
            if shown_at and abs(at[0] - shown_at[-1][0]) < 0.04 and abs(at[1] - shown_at[-1][1]) < 0.05:
                first = shown_at[-1][2]
                trace["text"][first] = f"{names[first]} to {names[i]}"
            else:
                shown_at.append((*at, i))
                trace["text"][i] = names[i]


def _latency(same: Sequence[Series], load: str, metric: tuple[str, str, str]) -> Chart:
    key, short, title = metric
    traces, drawn = [], []
    for series in same:
        found = {stat: [points.value(p, key, stat) for p in series.points] for stat in PERCENTILES}
        levels = [point.level for point in series.points]
        values = {stat: [one.value for one in column] for stat, column in found.items()}
        drawn += [v for column in values.values() for v in column if v is not None and v > 0]
        hover = [
            _hover(series, point, [f"{stat} {_ms(found[stat][i])}" for stat in PERCENTILES])
            for i, point in enumerate(series.points)
        ]
        traces += [
            _band(series, levels, values["p50"], values["p99"]),
            _band(series, levels, values["p50"], values["p90"]),
            _line(series, levels, values["p50"], hover),
        ]
    return Chart(
        f"{key}-{load}",
        title,
        f"{short} against {_title(load)}: line p50, shaded up to p90 and, lighter, p99",
        figure_of(traces, _level_axis(same, load), latency_axis(short, drawn)),
        _missing(same, key, ("p50", "p90", "p99")),
    )


def _line(
    series: Series, x: Sequence[float | None], y: Sequence[float | None], hover: Sequence[str]
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": markup_text(series.target.name),
        "x": list(x),
        "y": list(y),
        "customdata": list(hover),
        "hovertemplate": "%{customdata}",
        "connectgaps": False,
        "cliponaxis": False,
        "line": {"width": 2, "dash": DASHES[series.position // len(SYMBOLS) % len(DASHES)]},
        "marker": {"size": 8, "symbol": SYMBOLS[series.position % len(SYMBOLS)]},
        "meta": {"series": series.position, "role": "line"},
    }


def _band(
    series: Series, levels: Sequence[float], lower: Sequence[float | None], upper: Sequence[float | None]
) -> dict[str, Any]:
    """One closed outline for each stretch of levels where both bounds are known."""
    x: list[float | None] = []
    y: list[float | None] = []
    stretch: list[tuple[float, float, float]] = []
    for level, low, high in [*zip(levels, lower, upper, strict=True), (0.0, None, None)]:
        if low is not None and high is not None:
            stretch.append((level, low, high))
        elif stretch:
            x += [*(s[0] for s in stretch), *(s[0] for s in reversed(stretch)), None]
            y += [*(s[1] for s in stretch), *(s[2] for s in reversed(stretch)), None]
            stretch = []
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "fill": "toself",
        "hoverinfo": "skip",
        "line": {"width": 0},
        "meta": {"series": series.position, "role": "band"},
    }


def _error_bars(found: Sequence[Value]) -> dict[str, Any]:
    if all(one.low is None for one in found):
        return {}
    above = [0.0 if v.high is None or v.value is None else v.high - v.value for v in found]
    below = [0.0 if v.low is None or v.value is None else v.value - v.low for v in found]
    return {"error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 4}}


def figure_of(traces: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    return {"data": traces, "layout": {"xaxis": x, "yaxis": y}}


def plain_axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title}, "automargin": True, "rangemode": "tozero", "tickformat": ","}


def latency_axis(title: str, drawn: Sequence[float]) -> dict[str, Any]:
    """`drawn` are all values on it, above 0. Logarithmic where they are far apart; its title says so."""
    if not drawn or max(drawn) / min(drawn) < LOG_SCALE_FROM:
        return plain_axis(f"{title} (ms)")
    decades = range(floor(log10(min(drawn))), floor(log10(max(drawn))) + 1)
    steps = (1, 2, 5) if max(drawn) / min(drawn) <= STEPS_UP_TO else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return {
        "title": {"text": f"{title} (ms, log scale)"},
        "automargin": True,
        "type": "log",
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{tick:,.10g}" for tick in ticks],
    }


def _level_axis(same: Sequence[Series], load: str) -> dict[str, Any]:
    levels = sorted({point.level for series in same for point in series.points})
    axis = {
        "title": {"text": _title(load)},
        "automargin": True,
        "tickmode": "array",
        "tickvals": levels,
        "ticktext": [whole(level) for level in levels],
    }
    if levels[0] <= 0:
        return axis
    # Levels double from one to the next: on a log axis they stand at equal distances.
    margin = 0.06 * (log10(levels[-1] / levels[0]) or 1.0)
    return axis | {"type": "log", "range": [log10(levels[0]) - margin, log10(levels[-1]) + margin]}


def _hover(series: Series, point: Point, lines: list[str]) -> str:
    counts = points.counts(point)
    first = f"<b>{_title(series.load)} {level_text(point)}</b>"
    return "<br>".join([first, *lines, f"{counts.get('ok', 0):,} ok, {points.n_failed(point):,} failed"])


def _ms(found: Value) -> str:
    one = shown(found)
    return one.text if one.value is None else f"{one.text} ms"


def _missing(same: Sequence[Series], metric: str, stats: tuple[str, ...]) -> tuple[str, ...]:
    """`vllm: p99 at 1, 2 and 4`, one for each series with gaps."""
    found = []
    for series in same:
        for stat in stats:
            gaps = [p for p in series.points if points.value(p, metric, stat).value is None]
            if gaps:
                name = f"{clean(series.target.name)}: {'' if stat == 'value' else f'{stat} '}"
                found.append(name + f"at {listed(level_text(p) for p in gaps)}")
    return tuple(found)


def _title(load: str) -> str:
    return LOAD_TITLES.get(load, markup_text(load))
