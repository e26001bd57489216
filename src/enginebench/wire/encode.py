"""Request -> JSON body, per endpoint and dialect."""

from __future__ import annotations

from typing import Any

import msgspec

from enginebench.model.request import Dialect, EndpointKind, Request, Sampling


def encode_body(
    request: Request, model: str, endpoint: EndpointKind, dialect: Dialect, sampling: Sampling
) -> bytes:
    """The body to POST; always a stream.

    Fields that the dialect does not accept are left out, since strict servers refuse them. The
    dialect's `extra_body` comes last and wins, key by key.
    """
    body: dict[str, Any] = {"model": model}
    if endpoint == "chat":
        body["messages"] = [{"role": "user", "content": request.prompt}]
    else:
        body["prompt"] = request.prompt
    body[_max_tokens_field(endpoint, dialect)] = request.asked_output_tokens
    body["stream"] = True
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    if sampling.temperature is not None and dialect.temperature:
        body["temperature"] = sampling.temperature
    if sampling.ignore_eos and dialect.ignore_eos:
        body["ignore_eos"] = True
    if sampling.ignore_eos and dialect.min_tokens:
        body["min_tokens"] = request.asked_output_tokens
    body.update(dialect.extra_body)
    return msgspec.json.encode(body)


def _max_tokens_field(endpoint: EndpointKind, dialect: Dialect) -> str:
    """`max_completion_tokens` exists in the chat API only."""
    if endpoint == "completions" and dialect.max_tokens_field == "max_completion_tokens":
        return "max_tokens"
    return dialect.max_tokens_field
