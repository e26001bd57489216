"""llama.cpp's own server, started, used and stopped for real."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import tokenizers
from tests.engines.conftest import LlamaSpec
from tests.engines_unit.waiting import wait_for_exit

from enginebench.catalog.invocation import engines_folder, invocation
from enginebench.catalog.launchers import load_launcher
from enginebench.engines.process import Engine, alive, running, start, stop
from enginebench.engines.readiness import check_endpoint
from enginebench.engines.version import engine_version
from enginebench.errors import EngineExited, TargetError

pytestmark = pytest.mark.engine

OWNER = """
import pickle, signal, sys
from enginebench.engines.process import start
engine = start(pickle.load(sys.stdin.buffer))
print(engine.pid, engine.port, flush=True)
signal.pause()
"""


def post(engine: Engine, path: str, **body: Any) -> httpx.Response:
    body = {"model": "tiny-llama", "ignore_eos": True, "cache_prompt": False, "temperature": 0, **body}
    return httpx.post(engine.base_url + path, json=body, timeout=60, trust_env=False)


def counters(engine: Engine) -> dict[str, float]:
    """The engine's own counters under our names."""
    text = httpx.get(engine.base_url.removesuffix("/v1") + "/metrics", trust_env=False).text
    values = dict(re.findall(r"^([\w:]+) ([\d.e+-]+)$", text, re.MULTILINE))
    return {ours: float(values[theirs]) for ours, theirs in load_launcher("llamacpp").metrics.items()}


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_it_is_started_completes_and_is_stopped(endpoint: Any, llamacpp: LlamaSpec) -> None:
    with running(llamacpp(endpoint)) as engine:
        assert engine.first_token_s is not None
        assert 0 < engine.ready_s < engine.first_token_s
        assert check_endpoint(engine.base_url, "tiny-llama", {}) == ["tiny-llama"]
        answer = post(engine, "/completions", prompt="the water", max_tokens=7).json()
        assert answer["usage"]["completion_tokens"] == 7
    assert not listens(engine.port)
    assert not psutil.pid_exists(engine.pid)


def test_its_counters_count_what_it_was_asked_for(llamacpp: LlamaSpec) -> None:
    with running(llamacpp(max_num_seqs=4)) as engine:
        before = counters(engine)
        with ThreadPoolExecutor(4) as pool:
            asked = [
                pool.submit(post, engine, "/completions", prompt=f"{word} water", max_tokens=16)
                for word in ("the", "this", "that", "these")
            ]
            usages = [answer.result().json()["usage"] for answer in asked]
        after = counters(engine)
    assert after["generation_tokens"] - before["generation_tokens"] == 4 * 16
    prompt_tokens = sum(usage["prompt_tokens"] for usage in usages)
    assert after["prompt_tokens"] - before["prompt_tokens"] == prompt_tokens
    assert after["requests_running"] == after["requests_waiting"] == 0


def test_a_repeated_prompt_is_not_answered_from_the_cache(llamacpp: LlamaSpec) -> None:
    with running(llamacpp(max_num_seqs=1)) as engine:
        extra = load_launcher("llamacpp").dialect.extra_body
        for _ in range(2):
            answer = post(engine, "/completions", prompt="the same words " * 8, max_tokens=1, **extra)
            assert answer.json()["timings"]["cache_n"] == 0


def test_its_slots_hold_the_context_that_was_asked_for(llamacpp: LlamaSpec) -> None:
    with running(llamacpp(max_num_seqs=3, max_model_len=256)) as engine:
        slots = httpx.get(engine.base_url.removesuffix("/v1") + "/slots", trust_env=False).json()
    assert [slot["n_ctx"] for slot in slots] == [256, 256, 256]


def test_the_tokenizer_beside_the_model_counts_as_the_engine_does(llamacpp: LlamaSpec) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(engines_folder() / "models" / "tokenizer.json"))
    texts = [
        "The quick brown fox jumps over the lazy dog, and then some more.",
        "def f(x):\n    return {'a': [x, 1.5e3]}  # ok?\n\n\tdone",
        "模型服务 的 延迟 naïve café — 😀 <|im_start|>",
        "   spaces   and\nlines\r\n\n  end ",
    ]
    with running(llamacpp()) as engine:
        url = engine.base_url.removesuffix("/v1") + "/tokenize"
        for text in texts:
            body = {"content": text, "add_special": False, "parse_special": True}
            ids = httpx.post(url, json=body, trust_env=False).json()["tokens"]
            assert tokenizer.encode(text).ids == ids, text


def test_its_version_is_told_by_the_command_of_its_launcher(llamacpp: LlamaSpec) -> None:
    made = invocation(load_launcher("llamacpp"), "wheel", {"model": "m"})
    version = engine_version(made.version_argv, made.env)
    assert version is not None
    assert re.fullmatch(r"xllamacpp [\d.]+", version)


def test_a_model_file_that_does_not_exist_is_told_in_the_engines_own_words(
    llamacpp: LlamaSpec, tmp_path: Path
) -> None:
    with pytest.raises(EngineExited) as caught:
        start(llamacpp(model=str(tmp_path / "absent.gguf")))
    assert "absent.gguf" in caught.value.log_tail
    assert caught.value.exit_status == 1


def test_two_of_them_cannot_share_a_port(llamacpp: LlamaSpec) -> None:
    with running(llamacpp()) as first:
        with pytest.raises(TargetError, match=f"port {first.port} is taken by process {first.pid}"):
            start(replace(llamacpp(), port=first.port))
        assert alive(first)


def test_killing_its_owner_leaves_nothing(llamacpp: LlamaSpec) -> None:
    argv = [sys.executable, "-c", OWNER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        owner.stdin.write(pickle.dumps(llamacpp()))
        owner.stdin.close()
        pid, port = map(int, owner.stdout.readline().split())
        tree = {pid, *(child.pid for child in psutil.Process(owner.pid).children(recursive=True))}
        assert listens(port)
        owner.send_signal(signal.SIGKILL)
    for process in tree:
        wait_for_exit(process)
    assert not listens(port)


def test_starting_and_stopping_it_again_and_again_leaves_no_trace(
    llamacpp: LlamaSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))

    def traces() -> tuple[list[int], list[str]]:
        children = [child.pid for child in psutil.Process().children(recursive=True)]
        return children, sorted(os.listdir("/proc/self/fd"))

    before = traces()
    for _ in range(5):
        engine = start(llamacpp())
        assert alive(engine)
        stop(engine)
        assert not listens(engine.port)
    assert traces() == before
    assert list(temporary.iterdir()) == []


def test_the_installed_model_is_the_one_that_the_generator_makes(llamacpp: LlamaSpec, tmp_path: Path) -> None:
    llamacpp()
    python = engines_folder() / "llamacpp" / "bin" / "python"
    generator = Path(__file__).parents[2] / "scripts" / "make_tiny_model.py"
    subprocess.run([python, generator, tmp_path], check=True, stdout=subprocess.DEVNULL)
    for name in ("tiny-llama.gguf", "tokenizer.json"):
        assert (tmp_path / name).read_bytes() == (engines_folder() / "models" / name).read_bytes()
    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    assert len(vocabulary) == 4096
