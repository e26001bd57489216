"""Run metadata as rows of words: environment, targets, how to repeat the run, what the words mean.

`meta` is run.json (docs/formats.md). A run that died early lacks parts of it, so every part is optional.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from enginebench.report.text import clean, clean_lines, number

Row = tuple[str, str]

_INCOMPLETE = {
    "running": "it is still running; finished levels are shown",
    "interrupted": "it was interrupted; what was measured until then is shown",
    "failed": "a target failed; what was measured until then is shown",
    "crashed": "it died; what had reached the disk, all but its last seconds, is shown",
}

DEFINITIONS: tuple[Row, ...] = (
    (
        "concurrency",
        "closed loop: so many users, each of whom sends the next request when the last one has ended.",
    ),
    (
        "TTFT",
        "time to first token: from the last request byte sent to the first chunk with generated output of "
        "any kind (content, reasoning, tool call). Frames with only a role, usage or a ping do not count.",
    ),
    (
        "ICL",
        "inter-chunk latency: the gaps between a stream's output chunks; a chunk may hold several tokens.",
    ),
    (
        "ITL",
        "inter-token latency: a gap divided over the tokens of its chunk. Needs token counts per chunk.",
    ),
    (
        "server TTFT",
        "TTFT as the engine's own histogram has it over the window, linear inside a bucket: without the "
        "network and what lies before the engine's clock.",
    ),
    ("server ITL", "the engine's own inter-token latency, from its histogram in the same way."),
    (
        "TPOT",
        "time per output token of a request: (last output - first output) / (output tokens - tokens in the "
        "first chunk).",
    ),
    (
        "per user",
        "1 / TPOT of a request: the speed at which one user's answer grows. Its p99 is the speed that 99 % "
        "of the requests reach or exceed.",
    ),
    ("E2E", "end-to-end latency: from the last request byte sent to the last output."),
    ("output", "output tokens that arrived inside the measured window / its length."),
    ("total", "the same with prompt tokens added, each prompt counted when its first token came."),
    ("requests", "requests that ended well inside the measured window / its length."),
    ("in flight", "mean number of requests under way inside the measured window."),
    (
        "client delay",
        "from the kernel's receive stamp of a chunk to the moment it was read. It is not inside any latency "
        "above: those are taken from the kernel's stamps.",
    ),
    (
        "coalesced",
        "share of output chunks whose own arrival time was lost because several waited unread together.",
    ),
    (
        "p50, p90, p95, p99",
        "percentiles over the requests of a level that succeeded (ICL, ITL: over all their gaps).",
    ),
    (
        "n/a (n=12)",
        "no number: 12 samples are too few for that percentile. n/a alone: not measured, for a reason given.",
    ),
)


def incomplete(status: str) -> str | None:
    """Why a run is not complete, as a sentence; None when it is."""
    if status == "done":
        return None
    return f"This run is not complete: {_INCOMPLETE.get(status, clean(status))}."


def environment_rows(meta: Mapping[str, Any]) -> list[Row]:
    """Hosts and software, label and value, cleaned."""
    rows: list[Row] = []
    hosts = meta.get("hosts") or []
    for host in hosts:
        prefix = f"{clean(str(host.get('hostname')))}: " if len(hosts) > 1 else ""
        facts = [
            ("host", host.get("hostname")),
            ("CPU", host.get("cpu")),
            ("cores", host.get("cores")),
            ("kernel", host.get("kernel")),
            ("governor", host.get("governor")),
            ("driver", host.get("driver")),
            ("CUDA", host.get("cuda")),
            ("Python", host.get("python")),
            ("packages", _versions(host.get("packages") or {})),
            ("boot id", host.get("boot_id")),
        ]
        rows += [(prefix + label, clean(str(value))) for label, value in facts if value not in (None, "")]
        rows += [(prefix + "GPU", _gpu(gpu)) for gpu in host.get("gpus") or []]
    return rows


def _gpu(gpu: Mapping[str, Any]) -> str:
    """`0: NVIDIA H100, 85.5 GB, GPU-1c2d, limit 700 W, ECC on, MIG off`, without what is unknown."""
    memory, limit = gpu.get("memory_bytes"), gpu.get("power_limit_w")
    parts = [
        gpu.get("name"),
        f"{number(memory / 1e9)} GB" if memory else None,
        gpu.get("uuid"),
        f"limit {number(limit)} W" if limit else None,
        *(
            f"{key.upper()} {'on' if gpu[key] else 'off'}"
            for key in ("ecc", "mig")
            if gpu.get(key) is not None
        ),
    ]
    return clean(f"{gpu.get('index')}: {', '.join(str(part) for part in parts if part)}")


def target_rows(target: Mapping[str, Any]) -> list[Row]:
    """One target of run.json: what served, where, from which command line, how long it took to start."""
    argv = target.get("argv")
    facts = [
        ("engine", " ".join(str(target[key]) for key in ("engine", "version") if target.get(key))),
        ("model", target.get("model")),
        ("endpoint", target.get("endpoint")),
        ("URL", target.get("base_url")),
        ("hardware", target.get("hardware")),
        ("image", target.get("image_digest")),
        ("command", shell_line(argv) if argv else None),
    ]
    rows = [(label, clean(str(value))) for label, value in facts if value]
    return rows + [("start", _start(start)) for start in target.get("starts") or []]


def differences(meta: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Facts in which the targets differ, with the value of each in their order; none for one target."""
    targets = meta.get("targets") or []
    facts = [_facts(target) for target in targets]
    labels = dict.fromkeys(label for one in facts for label in one)
    rows = [(clean(label), [clean(one.get(label, "n/a")) for one in facts]) for label in labels]
    return [row for row in rows if len(set(row[1])) > 1]


def _facts(target: Mapping[str, Any]) -> dict[str, str]:
    plain = ("engine", "version", "model", "endpoint", "hardware", "image_digest")
    found = {key.replace("_", " "): str(target[key]) for key in plain if target.get(key)}
    sent = target.get("request_fields") or {}
    return found | {f"sent: {key}": json.dumps(value) for key, value in sent.items()}


def _start(start: Mapping[str, Any]) -> str:
    ready, first = start.get("ready_s"), start.get("first_completion_s")
    words = [
        f"ready after {number(ready)} s" if ready is not None else "ready: n/a",
        f"first completion after {number(first)} s" if first is not None else "first completion: n/a",
    ]
    return ", ".join(words)


def _versions(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))


def shell_line(command: object) -> str:
    """An argv, or a line that is one already, as a shell would take it."""
    if isinstance(command, list | tuple):
        return clean(shlex.join(str(word) for word in command))
    return clean(str(command))


def reproduce(meta: Mapping[str, Any]) -> str | None:
    """The command that made the run; None where it was not kept."""
    command = meta.get("command")
    return shell_line(command) if command else None


def scenario_yaml(meta: Mapping[str, Any]) -> str | None:
    """The resolved scenario; YAML escapes what does not print."""
    scenario = meta.get("scenario")
    return yaml.safe_dump(scenario, sort_keys=False, default_flow_style=None, width=100) if scenario else None


def problem_lines(problem: str) -> list[str]:
    """Why a target was not measured: the reason first, then the lines of its log that came with it."""
    return clean_lines(problem)


def run_rows(meta: Mapping[str, Any]) -> list[Row]:
    """When the run was made and from what."""
    facts = [
        ("started", meta.get("created_utc")),
        ("finished", meta.get("finished_utc")),
        ("scenario hash", meta.get("scenario_sha256")),
    ]
    return [(label, clean(str(value))) for label, value in facts if value]
