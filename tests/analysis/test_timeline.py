"""What the charts show of single requests and of time."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from tests.analysis.rows import ORIGIN_NS, chunks, record, refused, run, steady

from enginebench.analysis.timeline import MOST_STEPS, details
from enginebench.model.details import SHARES, Details, Track
from enginebench.store.telemetry import SCHEMA


def track(found: Details, quantity: str, target: str = "t") -> Track:
    (one,) = [t for t in found.tracks if (t.quantity, t.target) == (quantity, target)]
    return one


def test_a_run_without_a_request_has_no_details() -> None:
    assert details(run([])) == Details(0.0, (), (), ())


def test_a_distribution_pools_the_repeats_of_a_level() -> None:
    found = details(
        run([record(0, chunks(10)), record(0, chunks(30), repeat=1), record(0, chunks(99), level=2.0)])
    )

    ttft = [one for one in found.distributions if one.metric == "ttft"]
    assert [(one.level, one.n, one.values_ms[0], one.values_ms[-1]) for one in ttft] == [
        (1.0, 2, 10.0, 30.0),
        (2.0, 1, 99.0, 99.0),
    ]
    assert all(len(one.values_ms) == len(SHARES) for one in ttft)
    assert ttft[0].values_ms[SHARES.index(0.5)] == 20.0


def test_failed_and_warm_up_requests_are_in_no_distribution() -> None:
    found = details(run([record(0, chunks(10), phase="warmup"), record(0, chunks(10), outcome="truncated")]))

    assert found.distributions == ()


def test_requests_in_flight_are_means_over_steps() -> None:
    # Steps of 50 ms: the first request fills one and a half of them, the second half of one.
    found = details(run([record(0, chunks(75)), record(50, chunks(75))]))

    assert found.step_s == 0.05
    assert track(found, "in_flight").at_s == (0.025, 0.075)
    assert track(found, "in_flight").values == (1.0, 1.0)


def test_tokens_of_successful_requests_are_counted_where_they_arrived() -> None:
    good, cut = record(0, chunks(10, 60, 70, tokens=1), output_tokens=3), record(0, chunks(10, tokens=1))

    found = details(run([good, replace(cut, outcome="truncated")]))

    assert track(found, "output_throughput").values == (20.0, 40.0)


def test_a_target_that_waits_for_another_one_has_a_gap() -> None:
    found = details(
        run(
            [
                record(0, chunks(40), target="a"),
                record(100, chunks(140), target="b"),
                record(200, chunks(240), target="a", repeat=1),
            ],
            targets=[{"name": "a"}, {"name": "b"}],
        )
    )

    assert track(found, "in_flight", "a").at_s == (0.025, None, 0.225)
    assert track(found, "in_flight", "a").values == (0.8, None, 0.8)
    assert track(found, "in_flight", "b").at_s == (0.125,)


def test_a_long_run_has_no_more_steps_than_a_chart_can_show() -> None:
    found = details(run([record(0, steady(10, 3_600_000, 50))]))

    assert found.step_s == 10.0
    assert len(track(found, "in_flight").at_s) == 360 <= MOST_STEPS


def test_failures_are_counted_by_kind_in_the_step_where_they_ended() -> None:
    found = details(
        run([refused(0), refused(1), refused(60), refused(2, error_kind=None), record(0, chunks(90))])
    )

    assert [(one.kind, one.at_s, one.n) for one in found.failures] == [
        ("http_429", (0.025, 0.075), (2, 1)),
        ("rejected", (0.025,), (1,)),
    ]


def test_what_we_cut_off_is_no_failure() -> None:
    assert details(run([record(0, chunks(10), outcome="cancelled", done=None)])).failures == ()


def reading(ms: float, name: str, value: float, source: str = "engine") -> dict[str, object]:
    at_ns = ORIGIN_NS + round(ms * 1e6)
    return {"at_ns": at_ns, "target": "t", "source": source, "device": None, "name": name, "value": value}


def test_the_engines_own_readings_are_means_over_steps_with_gaps_where_it_was_not_asked() -> None:
    readings = [
        reading(10, "kv_usage", 0.2),
        reading(20, "kv_usage", 0.4),
        reading(1010, "kv_usage", 0.5),
        reading(9010, "kv_usage", 0.1),
        reading(10, "cpu_share", 1.0, "host"),
    ]
    telemetry = pa.Table.from_pylist(readings, schema=SCHEMA)

    found = details(replace(run([record(0, chunks(40))]), telemetry=telemetry))

    one = track(found, "kv_usage")
    assert one.at_s == (0.025, 1.025, None, 9.025)
    assert one.values == (0.3, 0.5, None, 0.1)
    assert [t.quantity for t in found.tracks] == ["in_flight", "output_throughput", "kv_usage"]
