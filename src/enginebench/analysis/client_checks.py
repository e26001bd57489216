"""Checks of the measurement itself: clocks, the client, and whether the load was really applied.

Percentiles here serve a verdict, not print: they are taken of however few samples there are.
"""

from __future__ import annotations

import numpy as np

from enginebench.analysis import metrics, stats
from enginebench.analysis.evidence import Evidence, Finding, unless
from enginebench.model.record import COALESCED_OVER_NS
from enginebench.units import ms


def impossible_times(evidence: Evidence) -> Finding:
    """Negative durations beyond the clock tolerance: a fault of the recorder or of the clock."""
    requests, rows = evidence.requests, evidence.requests.sample
    spans = (
        metrics.ttft_ns(requests)[rows],
        metrics.e2e_ns(requests)[rows],
        metrics.icl_ns(requests, rows),
        metrics.send_lag_ns(requests)[rows],
        metrics.connect_ns(requests)[rows],
        requests.client_delay_ns,
    )
    n = sum(int((span < -stats.CLOCK_TOLERANCE_NS).sum()) for span in spans)
    return unless(
        n == 0,
        "fail",
        float(n),
        "So many durations were negative and are left out: do not trust this level; "
        "check the host's clock, and report this run as a bug.",
    )


def clock_step(evidence: Evidence) -> Finding | None:
    """Measured requests during which the wall clock was stepped."""
    requests = evidence.requests
    if not requests.measured.any():
        return None
    n = int((requests.measured & requests.clock_stepped).sum())
    return unless(
        n == 0,
        "warn",
        float(n),
        "The wall clock was stepped during so many requests; their times are of reading, not of "
        "arrival: let NTP settle before a run.",
    )


def no_stamps(evidence: Evidence) -> Finding | None:
    """Share of output chunks whose time is that of reading, for want of a kernel stamp."""
    n = evidence.n_outputs
    if not n:
        return None
    share = evidence.requests.n_unstamped / n
    return unless(
        share == 0,
        "warn",
        share,
        "This share of the output chunks has no usable kernel stamp: latencies hold the client's own "
        "delay, and that delay is not known.",
    )


def client_delay(evidence: Evidence) -> Finding | None:
    """p99 of read - arrived in ms. Latencies are of arrival and do not hold it; the next request of
    a user does."""
    delays = stats.usable(evidence.requests.client_delay_ns)
    if not len(delays):
        return None
    delay_ms = ms(float(np.percentile(delays, 99)))
    return unless(
        delay_ms <= 10,
        "warn",
        delay_ms,
        "The client read its chunks so many ms late (p99): it is near its limit, and users send their "
        "next request late; give it a core of its own or lower the concurrency.",
    )


def coalesced(evidence: Evidence) -> Finding | None:
    """Share of output chunks that waited unread behind a later one, so that their own stamp is lost."""
    outputs, measured = evidence.requests.outputs, evidence.requests.measured
    n = evidence.n_outputs
    if not n:
        return None
    share = int((outputs.coalesced & measured[outputs.request]).sum()) / n
    return unless(
        share <= 0.05,
        "fail",
        share,
        "Client-limited: this share of the output chunks lost its own arrival time, by more than "
        f"{ms(COALESCED_OVER_NS):.0f} ms; lower the concurrency or give the client a faster core.",
    )


def client_cpu(evidence: Evidence) -> Finding | None:
    """Share of one core that the load worker used."""
    client = evidence.result.client if evidence.result else {}
    cpu_s, wall_s = client.get("cpu_s"), client.get("wall_s")
    if cpu_s is None or not wall_s:
        return None
    share = cpu_s / wall_s
    return unless(
        share <= 0.80,
        "warn",
        share,
        "The load worker used this share of a core: it may be the limit, not the engine.",
    )


def sampler_cpu(evidence: Evidence) -> Finding | None:
    """Share of one core that reading the telemetry took."""
    client = evidence.result.client if evidence.result else {}
    cpu_s, wall_s = client.get("sampler_cpu_s"), client.get("sampler_wall_s")
    if cpu_s is None or not wall_s:
        return None
    share = cpu_s / wall_s
    return unless(
        share <= 0.05,
        "warn",
        share,
        "Reading the telemetry took this share of a core from the engine or the client: "
        "give them more cores.",
    )


def shared_cores(evidence: Evidence) -> Finding | None:
    """1 where engine and client may run on the same cores, 0 where their affinities are disjoint."""
    if evidence.shares_cores is None:
        return None
    return unless(
        not evidence.shares_cores,
        "warn",
        float(evidence.shares_cores),
        "Engine and client may run on the same cores, and take time from each other: pin them apart "
        "(taskset -c) where the engine needs the CPU.",
    )


def send_lag(evidence: Evidence) -> Finding | None:
    """p99 of sent - intended, as a share of the median latency."""
    requests, rows = evidence.requests, evidence.requests.sample
    lags = stats.usable(metrics.send_lag_ns(requests)[rows])
    e2e = stats.usable(metrics.e2e_ns(requests)[rows])
    median_ns = float(np.median(e2e)) if len(e2e) else 0.0
    if not len(lags) or not median_ns:
        return None
    share = float(np.percentile(lags, 99)) / median_ns
    return unless(
        share <= 0.01,
        "warn",
        share,
        "Requests left late (p99) by this share of the median latency: the load was a little lower "
        "than asked.",
    )


def occupancy(evidence: Evidence) -> Finding | None:
    """Observed concurrency over its cap."""
    observed = evidence.metrics["concurrency"].stats["value"].value
    if observed is None or not evidence.cap:
        return None
    share = observed / evidence.cap
    return unless(
        share >= 0.95,
        "warn",
        share,
        "On average only this share of the users had a request in flight: throughput is "
        "under-reported; measure longer, or look for a client that lags or a server that refuses.",
    )
