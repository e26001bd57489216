"""Engines' metrics: their text, and what is asked of it."""

import socket
from typing import Any

import pytest
from tests.fakes.scripted_server import scripted_server

from enginebench.telemetry.prometheus import parse, read_metrics

TEXT = """# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="a b, c} d"} 1.25e+03
vllm:generation_tokens_total{engine="1",model_name="x"} 50
llamacpp:tokens_predicted_total 7 1700000000
broken
vllm:odd{le="+Inf"} NaN
"""


def test_samples_are_summed_over_their_labels_and_odd_lines_passed_over():
    assert parse(TEXT) == {"vllm:generation_tokens_total": 1300.0, "llamacpp:tokens_predicted_total": 7.0}


@pytest.mark.parametrize("text", ["", "\n\n", "<html>", "a{", "a b c", "{} 1"])
def test_text_of_another_kind_gives_nothing(text):
    assert parse(text) == {}


def served(status: bytes, text: str) -> Any:
    def answer(connection: socket.socket, number: int) -> None:
        body = text.encode()
        connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    return scripted_server(answer)


NAMES = {"generation_tokens": "llamacpp:tokens_predicted_total", "prompt_tokens": "not:there"}


def test_values_come_under_our_names_and_what_is_not_served_is_left_out():
    with served(b"200 OK", TEXT) as server:
        assert read_metrics(server.url, NAMES) == {"generation_tokens": 7.0}


def test_an_engine_without_metrics_gives_nothing():
    with served(b"404 Not Found", TEXT) as server:
        assert read_metrics(server.url, NAMES) == {}
        url = server.url
    assert read_metrics(url, NAMES) == {}
