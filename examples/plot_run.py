"""Throughput and TTFT of a run against concurrency, as one HTML file.

python examples/plot_run.py reports/RUN [plot.html]
"""

import sys

from plotly.subplots import make_subplots

import enginebench

OUTPUT = ("content", "reasoning", "tool")


def main(folder: str, out: str = "plot.html") -> None:
    run = enginebench.load(folder)
    # The frame has one row per request, for any question that the summary does not answer.
    requests = run.frame().query("phase == 'measure' and outcome == 'ok'")
    first_ns = [
        next((t for t, kind in zip(times, kinds, strict=True) if kind in OUTPUT), float("nan"))
        for times, kinds in zip(requests["chunk_arrived_ns"], requests["chunk_kind"], strict=True)
    ]
    requests = requests.assign(ttft_ms=(first_ns - requests["sent_ns"]) / 1e6)

    plot = make_subplots(
        cols=2, subplot_titles=("Output throughput, tokens/s", "TTFT, ms: p50 and every request")
    )
    for target in run.summary().targets:
        levels = [level.level for level in target.levels]
        for col, metric, stat in ((1, "output_throughput", "value"), (2, "ttft", "p50")):
            values = [level.metrics[metric].stats[stat].value for level in target.levels]
            plot.add_scatter(x=levels, y=values, name=f"{target.name}: {metric}", row=1, col=col)
        own = requests[requests["target"] == target.name]
        plot.add_scatter(x=own["level"], y=own["ttft_ms"], name=target.name, mode="markers", row=1, col=2)
    plot.update_xaxes(type="log", title="concurrency")
    plot.write_html(out, include_plotlyjs=True)
    print(f"wrote {out}")


if __name__ == "__main__":
    main(*sys.argv[1:])
