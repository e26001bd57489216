"""Engines' metrics: their text, and what is asked of it."""

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.scripted_server import scripted_server

from enginebench.catalog.launchers import load_launcher
from enginebench.model.plan import Histogram
from enginebench.telemetry.prometheus import EngineMetrics, Snapshot, grown, read_once, snapshot

CAPTURES = Path(__file__).parent / "captures"
"""What vLLM 0.32.0 (30 users on 16 slots) and llama.cpp (xllamacpp 2026.10.11549) really served."""

TEXT = """# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="a b, c} d"} 1.25e+03
vllm:generation_tokens_total{engine="1",model_name="x"} 50
vllm:kv_cache_usage_perc{engine="0"} 0.2
vllm:kv_cache_usage_perc{engine="1"} 0.4
llamacpp:tokens_predicted_total 7 1700000000
broken
vllm:odd{le="+Inf"} NaN
"""


def test_counters_are_summed_over_their_labels_and_odd_lines_passed_over():
    names = {"generation_tokens": "vllm:generation_tokens_total", "prompt_tokens": "vllm:odd"}
    assert snapshot(TEXT, names) == Snapshot({"generation_tokens": 1300.0})


def test_shares_of_several_replicas_are_averaged():
    found = snapshot(TEXT, {"kv_usage": "vllm:kv_cache_usage_perc"})
    assert found.values == {"kv_usage": pytest.approx(0.3)}


@pytest.mark.parametrize("text", ["", "\n\n", "<html>", "a{", "a b c", "{} 1", 'a{x="} 1'])
def test_text_of_another_kind_gives_nothing(text):
    assert snapshot(text, {"kv_usage": "a", "ttft_seconds": "a"}) == Snapshot()


def test_buckets_come_in_the_order_of_their_bounds_and_summed_over_labels():
    text = """
h_bucket{le="+Inf",engine="0"} 5
h_bucket{engine="0",le="0.5"} 3.0
h_bucket{engine="0",le="0.25"} 1
h_bucket{engine="1",le="+Inf"} 2
h_bucket{engine="1",le="0.5"} 2
h_bucket{engine="1",le="0.25"} 0
h_sum{engine="0"} 2.5
h_sum{engine="1"} 0.75
h_count{engine="0"} 5
"""
    found = snapshot(text, {"ttft_seconds": "h"}).histograms
    assert found == {"ttft_seconds": Histogram((0.25, 0.5), (1, 5), 3.25, 7)}


def test_a_summary_is_no_histogram():
    assert snapshot('h{quantile="0.5"} 1\nh_sum 3\nh_count 4\n', {"ttft_seconds": "h"}) == Snapshot()


def test_every_name_that_the_vllm_launcher_gives_is_in_what_vllm_served():
    names = load_launcher("vllm").metrics
    found = snapshot((CAPTURES / "vllm.prom").read_text(), names)
    assert found.values.keys() | found.histograms.keys() == names.keys()
    assert (found.values["requests_running"], found.values["requests_waiting"]) == (16, 14)
    assert found.values["prompt_tokens"] == 4429
    assert 0 < found.values["kv_usage"] < 1
    ttft = found.histograms["ttft_seconds"]
    assert ttft.le[:3] == (0.001, 0.005, 0.01)
    assert list(ttft.n) == sorted(ttft.n)
    assert ttft.n[-1] <= ttft.count > 0


def test_every_name_that_the_llamacpp_launcher_gives_is_in_what_llamacpp_served():
    names = load_launcher("llamacpp").metrics
    found = snapshot((CAPTURES / "llamacpp.prom").read_text(), names)
    assert found.values.keys() == names.keys()
    assert found.values["generation_tokens"] == 2727
    assert found.histograms == {}


BEFORE = Histogram((0.1, 1.0), (2, 3), 1.5, 4)


def test_growth_is_the_difference_of_two_looks():
    assert grown(BEFORE, Histogram((0.1, 1.0), (2, 7), 4.0, 9)) == Histogram((0.1, 1.0), (0, 4), 2.5, 5)


def test_growth_without_a_sum_has_none():
    assert grown(BEFORE, Histogram((0.1, 1.0), (2, 7), None, 9)) == Histogram((0.1, 1.0), (0, 4), None, 5)


@pytest.mark.parametrize(
    "after",
    [
        Histogram((0.1, 2.0), (2, 7), 4.0, 9),
        Histogram((0.1,), (2,), 4.0, 9),
        Histogram((0.1, 1.0), (0, 1), 0.2, 1),
        Histogram((0.1, 1.0), (1, 5), 2.0, 9),
    ],
    ids=["other bounds", "fewer bounds", "a restart", "a bucket that shrank"],
)
def test_two_looks_that_do_not_belong_together_have_no_growth(after):
    assert grown(BEFORE, after) is None


def served(status: bytes, text: str) -> Any:
    def answer(connection: socket.socket, number: int) -> None:
        body = text.encode()
        connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    return scripted_server(answer)


NAMES = {"generation_tokens": "llamacpp:tokens_predicted_total", "prompt_tokens": "not:there"}


def test_values_come_under_our_names_and_what_is_not_served_is_left_out():
    with served(b"200 OK", TEXT) as server:
        assert read_once(EngineMetrics(server.url, NAMES)).values == {"generation_tokens": 7.0}


def test_an_engine_without_metrics_gives_nothing():
    with served(b"404 Not Found", TEXT) as server:
        assert read_once(EngineMetrics(server.url, NAMES)) == Snapshot()
        url = server.url
    assert read_once(EngineMetrics(url, NAMES)) == Snapshot()
