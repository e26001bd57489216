from __future__ import annotations

import hashlib
import json

import pytest

from enginebench.model.request import Dialect, EndpointKind, Request, Sampling
from enginebench.wire.encode import encode_body

REQUEST = Request(
    seq=3,
    prompt='say "hé"\n',
    prompt_sha256=hashlib.sha256(b"x").hexdigest(),
    asked_prompt_tokens=5,
    asked_output_tokens=128,
)
CHAT = '"messages":[{"role":"user","content":"say \\"hé\\"\\n"}]'
USAGE = '"stream":true,"stream_options":{"include_usage":true}'

GOLDEN: dict[str, tuple[EndpointKind, Dialect, Sampling, str]] = {
    "openai chat": (
        "chat",
        Dialect(max_tokens_field="max_completion_tokens"),
        Sampling(),
        f'{{"model":"m",{CHAT},"max_completion_tokens":128,{USAGE},"temperature":0.0}}',
    ),
    "vllm chat": (
        "chat",
        Dialect(ignore_eos=True, min_tokens=True),
        Sampling(),
        f'{{"model":"m",{CHAT},"max_tokens":128,{USAGE},"temperature":0.0,'
        '"ignore_eos":true,"min_tokens":128}',
    ),
    "output may end early": (
        "chat",
        Dialect(ignore_eos=True, min_tokens=True),
        Sampling(temperature=0.7, ignore_eos=False),
        f'{{"model":"m",{CHAT},"max_tokens":128,{USAGE},"temperature":0.7}}',
    ),
    "strict server": (
        "chat",
        Dialect(stream_options=False, temperature=False),
        Sampling(),
        f'{{"model":"m",{CHAT},"max_tokens":128,"stream":true}}',
    ),
    "temperature left to the server": (
        "chat",
        Dialect(),
        Sampling(temperature=None),
        f'{{"model":"m",{CHAT},"max_tokens":128,{USAGE}}}',
    ),
    "llama.cpp completions": (
        "completions",
        Dialect(ignore_eos=True, extra_body={"cache_prompt": False, "temperature": 0.2}),
        Sampling(),
        f'{{"model":"m","prompt":"say \\"hé\\"\\n","max_tokens":128,{USAGE},"temperature":0.2,'
        '"ignore_eos":true,"cache_prompt":false}',
    ),
    "text completions know no max_completion_tokens": (
        "completions",
        Dialect(max_tokens_field="max_completion_tokens"),
        Sampling(),
        f'{{"model":"m","prompt":"say \\"hé\\"\\n","max_tokens":128,{USAGE},"temperature":0.0}}',
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_bodies_are_byte_for_byte_what_each_dialect_accepts(name: str) -> None:
    endpoint, dialect, sampling, golden = GOLDEN[name]
    body = encode_body(REQUEST, "m", endpoint, dialect, sampling)
    assert body.decode() == golden
    assert json.loads(body)["stream"] is True
