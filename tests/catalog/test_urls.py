from __future__ import annotations

import pytest

from enginebench.catalog.urls import base_url, is_public


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("http://h:8000/v1", "http://h:8000/v1"),
        ("http://h:8000/v1/", "http://h:8000/v1"),
        ("http://h:8000/v1/chat/completions", "http://h:8000/v1"),
        ("http://h:8000/v1/chat/completions/", "http://h:8000/v1"),
        ("http://h:8000/chat/completions", "http://h:8000/v1"),
        ("http://h/openai/v1", "http://h/openai/v1"),
        ("http://127.0.0.1/v1", "http://127.0.0.1/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://[fe80::1%25eth0]:8000", "http://[fe80::1%25eth0]:8000/v1"),
    ],
)
def test_every_way_to_write_a_base_url_comes_to_the_same(written: str, meant: str) -> None:
    assert base_url(written, "chat") == meant


def test_the_full_address_of_the_completions_endpoint_is_cut_for_that_endpoint() -> None:
    assert base_url("http://h/v1/completions", "completions") == "http://h/v1"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("http://h/v1/completions", "it ends in /completions, but `endpoint` is chat; end it before that"),
        ("localhost:8000/v1", "it must begin with http://, such as http://localhost:8000/v1"),
        ("", "it must begin with http://, such as http://host:8000/v1"),
        ("ftp://h/v1", "it must begin with http://, such as http://h/v1"),
        ("http://u:p@h/v1", "it holds a user name or password; use `api_key_env` or `api_key_file`"),
        ("http://", "it is not a URL; write it as http://host:port/v1"),
        ("http://:80/v1", "it is not a URL; write it as http://host:port/v1"),
        ("http://h:0/v1", "it is not a URL; write it as http://host:port/v1"),
        ("http://h /v1", "it is not a URL; write it as http://host:port/v1"),
        ("http://h:x/v1", "it is not a URL (Port could not be cast to integer value as 'x')"),
        ("http://[::1/v1", "it is not a URL (Invalid IPv6 URL)"),
    ],
)
def test_an_unusable_url_says_why(written: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        base_url(written, "chat")
    assert str(caught.value) == message


@pytest.mark.parametrize("written", ["https://h/v1", "http://h/v1?api-version=1", "http://h/v1#x"])
def test_what_this_version_lacks_is_refused_by_name(written: str) -> None:
    with pytest.raises(ValueError, match="not in this version yet"):
        base_url(written, "chat")


@pytest.mark.parametrize(
    "host",
    ["localhost", "api.localhost", "127.0.0.1", "127.8.8.8", "[::1]", "10.1.2.3", "192.168.0.9",
     "172.16.1.1", "100.64.0.1", "169.254.1.1", "[fe80::1%25eth0]", "[fd00::1]", "gpu-box", "gpu.local",
     "vllm.svc.internal", "[::ffff:10.0.0.1]", "LOCALHOST", "localhost."],
)  # fmt: skip
def test_this_machine_and_private_networks_are_not_public(host: str) -> None:
    assert not is_public(f"http://{host}:8000/v1")


@pytest.mark.parametrize(
    "host",
    ["api.openai.com", "8.8.8.8", "[2001:4860:4860::8888]", "172.32.0.1", "localhost.example.com",
     "134744072", "0x8080808", "8.8.2056", "[::ffff:8.8.8.8]", "evil.local.example.org"],
)  # fmt: skip
def test_everything_else_is_public_however_it_is_spelt(host: str) -> None:
    assert is_public(f"http://{host}/v1")
