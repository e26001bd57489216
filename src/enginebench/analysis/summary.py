"""From a run to its summary, and from the summary to plain data for summary.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from enginebench.analysis import checks, columns
from enginebench.analysis.cells import CellKey, by_level
from enginebench.analysis.evidence import Evidence
from enginebench.analysis.levels import level_metrics
from enginebench.analysis.parity import parity
from enginebench.analysis.requests import Requests, read_requests
from enginebench.analysis.windows import find_window
from enginebench.model.plan import CellResult
from enginebench.model.record import OUTCOMES
from enginebench.model.run import Run
from enginebench.model.summary import Level, Metric, Summary, TargetSummary

SUMMARY_FORMAT = 1
"""Of summary.json. Added keys keep it; a renamed or re-defined one raises it."""
DEFINITIONS = "enginebench"

_NEEDED = [
    "target", "load", "level", "repeat", "phase", "intended_ns", "started_ns", "connected_ns", "sent_ns",
    "headers_ns", "done_ns", "outcome", "error_kind", "clock_stepped", "chunk_arrived_ns", "chunk_read_ns",
    "chunk_coalesced", "chunk_tokens", "chunk_kind", "prompt_tokens", "output_tokens", "reasoning_tokens",
    "cached_tokens", "token_source", "asked_prompt_tokens", "asked_output_tokens",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Given:
    """What is known of a level beside its records."""

    key: CellKey
    result: CellResult | None
    unique_prompts: bool
    shares_cores: bool | None


def summarise(run: Run) -> Summary:
    """All targets of the run in its order, each with its levels by (load, level, repeat).

    A target without a level is listed with its problem. Records of a cell that run.json does not
    know (the run died between the two writes) make an incomplete level. Of two results of one cell
    the later one stands.
    """
    meta = run.meta
    results = {_key_of(result): result for result in run.cells}
    tables = dict(by_level(run.records.select(_NEEDED)))
    unique_prompts = bool(meta["scenario"].get("workload", {}).get("unique_prompts", True))
    about = {target["name"]: target for target in meta["targets"]}
    nothing = run.records.slice(0, 0)
    levels = {
        key: _level(
            _Given(key, results.get(key), unique_prompts, about.get(key.target, {}).get("shares_cores")),
            tables.get(key, nothing),
        )
        for key in sorted(results.keys() | tables.keys())
    }
    names = [*about, *sorted({key.target for key in levels} - about.keys())]
    return Summary(
        format=SUMMARY_FORMAT,
        definitions=DEFINITIONS,
        name=meta["name"],
        status=meta["status"],
        created_utc=meta["created_utc"],
        host=meta["hosts"][0]["hostname"] if meta.get("hosts") else "",
        targets=tuple(
            _target(name, about.get(name, {}), tuple(lv for key, lv in levels.items() if key.target == name))
            for name in names
        ),
        parity=parity(run),
    )


def _target(name: str, about: Mapping[str, Any], levels: tuple[Level, ...]) -> TargetSummary:
    engine = " ".join(str(about[key]) for key in ("engine", "version") if about.get(key))
    return TargetSummary(
        name=name,
        engine=engine or about.get("base_url") or "not recorded",
        model=about.get("model"),
        endpoint=about.get("endpoint") or "not recorded",
        problem=about.get("problem"),
        levels=levels,
    )


def _key_of(result: CellResult) -> CellKey:
    cell = result.cell
    return CellKey(cell.target, cell.load, float(cell.level), cell.repeat)


def _level(given: _Given, table: pa.Table) -> Level:
    key, result = given.key, given.result
    requests = read_requests(table)
    window = find_window(result, requests)
    metrics = level_metrics(requests, window, result)
    evidence = Evidence(
        requests=requests,
        result=result,
        cap=key.level if key.load == "concurrency" else None,
        metrics=metrics,
        unique_prompts=given.unique_prompts,
        shares_cores=given.shares_cores,
    )
    return Level(
        load=key.load,
        level=key.level,
        repeat=key.repeat,
        complete=result is not None and result.finished,
        window=window,
        counts=_outcome_counts(table, requests),
        errors=_error_counts(table, requests),
        metrics=metrics,
        checks=checks.judge(evidence),
    )


def _outcome_counts(table: pa.Table, requests: Requests) -> dict[str, int]:
    """Every outcome, also those that did not occur: a count of 0 is a measurement."""
    found = columns.counts(table, "outcome", requests.measured)
    return {**{o: found.get(o, 0) for o in OUTCOMES}, "total": int(requests.measured.sum())}


def _error_counts(table: pa.Table, requests: Requests) -> dict[str, int]:
    """By error_kind, the most frequent first; by outcome where there is no kind."""
    failed = requests.measured & ~requests.ok
    found = columns.counts(table, "error_kind", failed)
    if found.pop(None, 0):
        unnamed = failed & ~columns.known(table, "error_kind")
        for outcome, n in columns.counts(table, "outcome", unnamed).items():
            found[outcome] = found.get(outcome, 0) + n
    return {str(kind): n for kind, n in sorted(found.items(), key=lambda item: (-item[1], str(item[0])))}


def to_plain(summary: Summary) -> dict[str, Any]:
    """Plain data for summary.json (docs/formats.md): strict JSON, null where a number is missing."""
    plain: dict[str, Any] = {
        key: getattr(summary, key)
        for key in ("format", "definitions", "name", "status", "created_utc", "host")
    }
    plain["notes"] = list(summary.notes)
    plain["parity"] = [dict(check) for check in summary.parity]
    plain["targets"] = [
        {
            **{key: getattr(target, key) for key in ("name", "engine", "model", "endpoint", "problem")},
            "levels": [_plain_level(level) for level in target.levels],
        }
        for target in summary.targets
    ]
    finite: dict[str, Any] = _finite(plain)
    return finite


def _plain_level(level: Level) -> dict[str, Any]:
    plain = {key: getattr(level, key) for key in ("load", "level", "repeat", "complete")}
    plain["window"] = asdict(level.window) if level.window else None
    plain["counts"], plain["errors"] = dict(level.counts), dict(level.errors)
    plain["metrics"] = {name: _plain_metric(metric) for name, metric in level.metrics.items()}
    plain["checks"] = [dict(check) for check in level.checks]
    return plain


def _plain_metric(metric: Metric) -> dict[str, Any]:
    stats = {name: asdict(stat) for name, stat in metric.stats.items()}
    return {"unit": metric.unit, "n": metric.n, "note": metric.note, **stats}


def _finite(plain: Any) -> Any:
    """JSON knows no NaN and no infinity."""
    if isinstance(plain, dict):
        return {key: _finite(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_finite(value) for value in plain]
    if isinstance(plain, float) and not math.isfinite(plain):
        return None
    return plain
