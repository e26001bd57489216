"""What an engine says of itself while it runs: its flags, limits and build, from its own endpoints."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import httpx

PATHS = ("/version", "/props", "/server_info", "/info")
"""Of vLLM and others; llama.cpp; SGLang; TGI."""
_TIMEOUT_S = 5.0
_LONG_CHARS = 300
_DEPTH = 4
_SECRET_KEY = re.compile(r"api[-_]?key|token$|secret|password", re.IGNORECASE)


def flags_as_running(
    root_url: str, headers: Mapping[str, str], secrets: tuple[str, ...]
) -> dict[str, Any] | None:
    """Path -> what it answered, for those of `PATHS` that answer with a JSON object; None when none
    does. Long texts (a chat template) are kept as their SHA-256, secrets as ***."""
    found = {}
    with httpx.Client(headers=dict(headers), timeout=_TIMEOUT_S, trust_env=False) as client:
        for path in PATHS:
            try:
                response = client.get(root_url.rstrip("/") + path)
                answer = response.json() if response.status_code == 200 else None
            except (httpx.HTTPError, ValueError):
                continue
            if isinstance(answer, dict):
                found[path] = _kept(answer, secrets, _DEPTH)
    return found or None


def _kept(value: Any, secrets: tuple[str, ...], depth: int) -> Any:
    if isinstance(value, dict | list) and not depth:
        return _kept(json.dumps(value, sort_keys=True), secrets, depth)
    if isinstance(value, dict):
        return {
            key: "***" if _SECRET_KEY.search(key) and inner else _kept(inner, secrets, depth - 1)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_kept(inner, secrets, depth - 1) for inner in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "***")
        if len(value) > _LONG_CHARS:
            return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None  # run.json is strict JSON
    return value


def image_digest(image: str) -> str | None:
    """The digest that the image's name stands for on this host; its id where it was never pulled or
    pushed. None when Docker cannot tell."""
    template = "{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}"
    try:
        done = subprocess.run(
            ["docker", "image", "inspect", "--format", template, image],
            capture_output=True,
            text=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
