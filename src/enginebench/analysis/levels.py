"""All metrics of one level, by their names in summary.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from enginebench.analysis import metrics, stats, windows
from enginebench.analysis.columns import Ints
from enginebench.analysis.requests import COUNTED_BY_SERVER, Requests
from enginebench.analysis.server_side import server_side
from enginebench.analysis.windows import Arrived
from enginebench.model.plan import CellResult
from enginebench.model.summary import LevelWindow, Metric, Stat

DISTRIBUTIONS: Mapping[str, str] = {
    "ttft": "ms",
    "ttfa": "ms",
    "icl": "ms",
    "itl": "ms",
    "tpot": "ms",
    "e2e": "ms",
    "per_user_tps": "tok/s",
    "client_delay": "ms",
    "send_lag": "ms",
    "connect": "ms",
    "server_ttft": "ms",
    "server_itl": "ms",
    "prompt_tokens": "tok",
    "output_tokens": "tok",
}
RATES: Mapping[str, str] = {
    "output_throughput": "tok/s",
    "total_throughput": "tok/s",
    "request_rate": "req/s",
    "concurrency": "requests",
}


def level_metrics(
    requests: Requests, window: LevelWindow | None, result: CellResult | None
) -> dict[str, Metric]:
    """Every metric, always all of them. Latencies and token counts are of successful requests of
    phase `measure`; rates are by arrival inside the window (windows.py). Where no measured request
    succeeded, every number is missing: a level that failed has no speed."""
    if not requests.sample.any():
        reason = "no request succeeded" if requests.measured.any() else "nothing was measured"
        missing = {name: stats.absent(unit, reason) for name, unit in DISTRIBUTIONS.items()}
        return missing | {name: stats.absent(unit, reason, ("value",)) for name, unit in RATES.items()}
    complete = result is not None and result.finished
    found = _distributions(requests) | server_side(result) | _rates(requests, window, complete)
    return {name: found[name] for name in (*DISTRIBUTIONS, *RATES)}


def _distributions(requests: Requests) -> dict[str, Metric]:
    rows = requests.sample
    tpot = stats.latency(
        metrics.tpot_ns(requests)[rows],
        "needs two output chunks at different times and the number of output tokens",
    )
    return {
        "ttft": _ttft(requests),
        "ttfa": stats.latency(metrics.ttfa_ns(requests)[rows], "no answer text was streamed"),
        "icl": stats.latency(metrics.icl_ns(requests, rows), "needs two output chunks"),
        "itl": _itl(requests),
        "tpot": tpot,
        "e2e": stats.latency(metrics.e2e_ns(requests)[rows], "no output was streamed"),
        "per_user_tps": stats.speed(tpot),
        "client_delay": stats.latency(requests.client_delay_ns, "chunks have no kernel stamps"),
        "send_lag": stats.latency(metrics.send_lag_ns(requests)[rows], "no request was sent"),
        "connect": stats.latency(metrics.connect_ns(requests)[rows], "connections were reused"),
        "prompt_tokens": _token_counts(requests, requests.tokens.prompt),
        "output_tokens": _with_note(_token_counts(requests, requests.tokens.output), _sources(requests)),
    }


def _ttft(requests: Requests) -> Metric:
    found = stats.latency(metrics.ttft_ns(requests)[requests.sample], "no output was streamed")
    n_hidden = int(requests.tokens.hidden[requests.sample].sum())
    return _with_note(found, f"holds {n_hidden} tokens of hidden reasoning" if n_hidden else None)


def _sources(requests: Requests) -> str | None:
    """Who counted, where it was not the server every time."""
    sources = requests.tokens.sources
    if sources.keys() <= COUNTED_BY_SERVER:
        return None
    return "counted by " + ", ".join(f"{source} {n}" for source, n in sorted(sources.items()))


def _with_note(metric: Metric, note: str | None) -> Metric:
    return replace(metric, note="; ".join(filter(None, (metric.note, note))) or None)


def _itl(requests: Requests) -> Metric:
    """Only where nearly every request has per-chunk counts: those that have them by luck, because
    no chunk of theirs bundled tokens, are not a fair sample of the rest."""
    n_known, n = metrics.itl_coverage(requests, requests.sample)
    if n == 0:
        return stats.absent("ms", "needs two output chunks")
    if n_known < (1 - stats.MAX_UNKNOWN) * n:
        return stats.absent(
            "ms", f"needs per-chunk token counts, which {n - n_known} of {n} requests do not have; see ICL"
        )
    return stats.latency(metrics.itl_ns(requests, requests.sample), "needs two chunks with tokens")


def _token_counts(requests: Requests, counts: Ints) -> Metric:
    values = counts.values[requests.sample & counts.known].astype(np.float64)
    return stats.distribution(values, "tok", "the server reported no count")


def _rates(requests: Requests, window: LevelWindow | None, complete: bool) -> dict[str, Metric]:
    if window is None:
        return {name: stats.absent(unit, "no window", ("value",)) for name, unit in RATES.items()}
    broken = None if complete else "the level broke off: requests still open then are not counted"
    output = windows.output_arrived(window, requests)
    prompt = windows.prompt_arrived(window, requests)
    n_done = windows.completed(window, requests)
    flight = windows.in_flight(window, requests)
    return {
        "output_throughput": _throughput(window, (output,), broken),
        "total_throughput": _throughput(window, (output, prompt), broken),
        "request_rate": stats.single(
            n_done / window.duration_s,
            RATES["request_rate"],
            n_done,
            broken if n_done else "no request ended inside the window",
        ),
        "concurrency": Metric(
            RATES["concurrency"],
            flight.n_requests,
            {"value": Stat(flight.mean), "peak": Stat(float(flight.peak))},
        ),
    }


def _throughput(window: LevelWindow, parts: tuple[Arrived, ...], note: str | None) -> Metric:
    """Tokens arrived / window. The first part is the output, which must not be empty."""
    n = parts[0].n_requests
    n_uncounted = max(part.n_uncounted for part in parts)
    if n_uncounted > stats.MAX_UNKNOWN * (n + n_uncounted):
        return stats.absent("tok/s", f"{n_uncounted} requests have no token count", ("value",))
    if n == 0:
        return stats.absent("tok/s", "no output of a successful request arrived in the window", ("value",))
    if n_uncounted:
        note = "; ".join(filter(None, (note, f"without {n_uncounted} requests that have no token count")))
    value = sum(part.n_tokens for part in parts) / window.duration_s
    return stats.single(value, "tok/s", n, note)
