"""What a scenario will do: its cells in order of execution, and an estimate of their cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from enginebench.catalog.urls import is_public
from enginebench.model.plan import Cell
from enginebench.model.request import ENDPOINT_PATHS
from enginebench.model.scenario import ConcurrencyLoad, Scenario, Target
from enginebench.units import NS_PER_S, format_duration
from enginebench.workload.lengths import mean_tokens

_NAME_WIDTH = 24


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One load level of one target, all repeats together. None: cannot be known before the run."""

    target: str
    load: str
    level: int
    repeats: int
    time_ns: int | None
    """Warm-up and measured time. Starting engines and finishing the last requests come on top."""
    requests: int | None
    """Measured ones; a level that is measured by time sends as many as the target can take."""
    input_tokens: int | None
    output_tokens: int | None


def cells(scenario: Scenario) -> list[Cell]:
    """All cells in order of execution.

    Interleaved: repeat by repeat, in each every target in turn, in each all its levels; so slow
    drift of the machine touches all targets alike. Sequential: target by target.
    """
    repeats, targets = range(scenario.repeats), scenario.targets
    if scenario.order == "interleaved":
        blocks = [(target, repeat) for repeat in repeats for target in targets]
    else:
        blocks = [(target, repeat) for target in targets for repeat in repeats]
    steps = [(load, level) for load in scenario.load for level in load.levels]
    return [
        Cell(
            target=target.name,
            load=load.kind,
            level=level,
            repeat=repeat,
            ordinal=repeat * len(steps) + i,
            warmup_ns=load.warmup_ns,
            duration_ns=load.duration_ns,
            requests=load.requests,
        )
        for target, repeat in blocks
        for i, (load, level) in enumerate(steps)
    ]


def estimate(scenario: Scenario) -> list[PlanRow]:
    """One row for each target and level, in the order of the scenario."""
    workload = scenario.workload
    asked = mean_tokens(workload.input_tokens), mean_tokens(workload.output_tokens)
    return [
        _row(target, load, level, scenario.repeats, asked)
        for target in scenario.targets
        for load in scenario.load
        for level in load.levels
    ]


def plan_table(scenario: Scenario) -> str:
    """The estimate as text for a terminal of 80 columns."""
    return "\n".join(line.rstrip() for line in _lines(scenario, estimate(scenario)))


def public_targets(scenario: Scenario) -> list[str]:
    """Names of the targets whose host may belong to someone else, unless the scenario allows it."""
    if scenario.allow_public:
        return []
    return [target.name for target in scenario.targets if target.url is not None and is_public(target.url)]


def _row(
    target: Target, load: ConcurrencyLoad, level: int, repeats: int, asked: tuple[float, float]
) -> PlanRow:
    requests = None if load.requests is None else repeats * load.requests
    input_tokens, output_tokens = (None if requests is None else round(requests * mean) for mean in asked)
    time_ns = None if load.duration_ns is None else repeats * (load.warmup_ns + load.duration_ns)
    return PlanRow(target.name, load.kind, level, repeats, time_ns, requests, input_tokens, output_tokens)


def _lines(scenario: Scenario, rows: list[PlanRow]) -> Iterator[str]:
    n_cells = len(rows) * scenario.repeats
    yield f"{scenario.name}: {_number(n_cells, 'cell')} ({scenario.order}, seed {scenario.seed})"
    for target in scenario.targets:
        yield f"  {_clipped(target.name, _NAME_WIDTH)}: {_described(target)}"
    workload = scenario.workload
    asked, answered = mean_tokens(workload.input_tokens), mean_tokens(workload.output_tokens)
    is_fixed = workload.input_tokens.kind == workload.output_tokens.kind == "fixed"
    average = "" if is_fixed else " on average"
    yield f"  each request: {asked:,.0f} tokens in, {answered:,.0f} out{average}"
    yield ""
    yield _columns("target", "users", "repeats", "time", "requests", "tokens in", "tokens out")
    for row in rows:
        cost = (_counted(row.requests), _counted(row.input_tokens), _counted(row.output_tokens))
        yield _columns(row.target, str(row.level), str(row.repeats), _clock(row.time_ns), *cost)
    yield _columns("total", "", "", _total_time(rows), *_total_counts(rows))
    yield ""
    if any(row.requests is None for row in rows):
        yield "?: measured by time, so as many as the target can take"
    if any(row.time_ns is None for row in rows):
        yield "?: measured by count, so as long as the target takes"
    yield "Warm-up requests are not counted; starting engines and finishing the last"
    yield "requests of each level take more time."


def _described(target: Target) -> str:
    if target.url is not None:
        return f"{target.model} at {target.url}{ENDPOINT_PATHS[target.endpoint]}"
    options = "".join(f" {name}={value}" for name, value in target.options.items())
    gpus = "" if target.gpus is None else f", GPUs {', '.join(map(str, target.gpus)) or 'none'}"
    return f"{target.model} on {target.launch} ({target.via}{gpus}){options}"


def _columns(*cells: str) -> str:
    name, users, repeats, time, requests, tokens_in, tokens_out = cells
    return (
        f"{_clipped(name, _NAME_WIDTH):{_NAME_WIDTH}}{users:>7}{repeats:>9}{time:>9}"
        f"{requests:>9}{tokens_in:>11}{tokens_out:>11}"
    )


def _total_time(rows: list[PlanRow]) -> str:
    known = [row.time_ns for row in rows if row.time_ns is not None]
    return _clock(sum(known)) + ("+?" if len(known) < len(rows) else "") if known else "?"


def _total_counts(rows: list[PlanRow]) -> list[str]:
    totals = []
    for column in ("requests", "input_tokens", "output_tokens"):
        values = [getattr(row, column) for row in rows]
        known = [value for value in values if value is not None]
        totals.append(f"{sum(known):,}" + ("+?" if len(known) < len(values) else "") if known else "?")
    return totals


def _counted(n: int | None) -> str:
    return "?" if n is None else f"{n:,}"


def _clock(time_ns: int | None) -> str:
    """1:02:03, 2:03 or 5s; below a minute as written."""
    if time_ns is None:
        return "?"
    if time_ns < 60 * NS_PER_S:
        return format_duration(time_ns)
    minutes, seconds = divmod(round(time_ns / NS_PER_S), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _clipped(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
