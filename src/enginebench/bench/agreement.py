"""A few fixed prompts, sent to every target before the load: do the targets give the same answers?

The requests are encoded and decoded as those of the load are, but sent one by one, and none of them
is among the records. What they mean is judged in `analysis.agreement`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx

from enginebench.bench.targets import OpenTarget
from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture, Read
from enginebench.model.record import Decoded
from enginebench.model.request import Request, Sampling
from enginebench.units import seconds
from enginebench.wire.decode import decode
from enginebench.wire.encode import encode_body

OUTPUT_TOKENS = 32
GREEDY = Sampling(temperature=0.0, ignore_eos=False)
_CONNECT_TIMEOUT_S = 10.0

PROMPTS = (
    "Name three rivers in Europe.",
    "Why is the sky blue on a clear day? Answer in one sentence.",
    "List the prime numbers below thirty.",
    "Translate into French: The train leaves at noon.",
    "What is 17 times 23?",
    "Write a sentence about a lighthouse in winter.",
    "Which is heavier, a kilogram of iron or a kilogram of feathers?",
    "Continue the series: Monday, Tuesday, Wednesday,",
    "Explain in simple words what a compiler does.",
    "Spell the word 'benchmark' backwards.",
    "def fibonacci(n):\n    ",
    "Write a Python function that reverses a string.",
    "SELECT name, COUNT(*) FROM orders",
    'for (int i = 0; i < 10; i++) {\n    printf("',
    "What does this shell command do: grep -rn TODO src | wc -l",
    "用一句话解释什么是机器学习。",
    "中国最长的河流是哪一条?",
    "请把这句话翻译成英文:今天天气很好。",
    "列出三种常见的水果。",
    "写一句关于秋天的话。",
)
"""English, code and Chinese; they stay as they are, so that runs can be compared."""


def answers(target: OpenTarget) -> list[dict[str, Any]]:
    """{prompt_sha256, output, output_tokens} of each prompt, in order. `output` is None for a request
    that failed, and no more are sent after it: the load will show what is wrong."""
    found: list[dict[str, Any]] = []
    endpoint = target.endpoint
    timeouts = endpoint.timeouts
    timeout = httpx.Timeout(_CONNECT_TIMEOUT_S, read=seconds(max(timeouts.first_token_ns, timeouts.idle_ns)))
    # Nothing to verify over plain HTTP, and reading the certificates would cost 50 ms.
    is_tls = endpoint.url.startswith("https:")
    with httpx.Client(
        trust_env=False, verify=is_tls, timeout=timeout, headers=dict(endpoint.headers)
    ) as client:
        deadline_ns = monotonic_ns() + timeouts.total_ns
        for seq, prompt in enumerate(PROMPTS):
            request = _request(seq, prompt)
            decoded = _ask(client, target, request, deadline_ns)
            ended_well = decoded is not None and decoded.outcome in ("ok", "empty")
            found.append(
                {
                    "prompt_sha256": request.prompt_sha256,
                    "output": (decoded.text or "") if decoded and ended_well else None,
                    "output_tokens": decoded.output_tokens if decoded and ended_well else None,
                }
            )
            if not ended_well:
                break
    return found


def request_fields(target: OpenTarget, sampling: Sampling) -> dict[str, Any]:
    """What is sent with every request of the load beside its prompt and its length."""
    body = encode_body(_request(0, ""), target.model, target.target.endpoint, target.dialect, sampling)
    own = {"model", "messages", "prompt", "min_tokens", target.dialect.max_tokens_field, "max_tokens"}
    return {key: value for key, value in json.loads(body).items() if key not in own}


def _request(seq: int, prompt: str) -> Request:
    sha256 = hashlib.sha256(prompt.encode()).hexdigest()
    return Request(seq, prompt, sha256, len(prompt.split()), OUTPUT_TOKENS)


def _ask(client: httpx.Client, target: OpenTarget, request: Request, deadline_ns: int) -> Decoded | None:
    """The answer as decoded; None when it broke off or the deadline passed."""
    body = encode_body(request, target.model, target.target.endpoint, target.dialect, GREEDY)
    now_ns = monotonic_ns()
    capture = Capture(request.seq, "warmup", now_ns, now_ns, ending="complete")
    headers = {"Content-Type": "application/json"}
    try:
        with client.stream("POST", target.endpoint.url, content=body, headers=headers) as response:
            capture.status = response.status_code
            capture.headers = [(name.lower(), value) for name, value in response.headers.items()]
            for part in response.iter_bytes():
                read_ns = monotonic_ns()
                if read_ns > deadline_ns:
                    return None
                capture.reads.append(Read(None, read_ns, read_ns, part))
    except (httpx.HTTPError, OSError):
        return None
    return decode(capture, target.secrets)
