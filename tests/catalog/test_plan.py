from __future__ import annotations

from dataclasses import replace

import pytest

from enginebench.catalog.plan import PlanRow, cells, estimate, plan_table, public_targets
from enginebench.model.plan import CELL_SEQ
from enginebench.model.scenario import ConcurrencyLoad, Scenario, Target, TokenCount, Workload
from enginebench.units import NS_PER_S

TIMED = ConcurrencyLoad((1, 8), warmup_ns=10 * NS_PER_S, duration_ns=60 * NS_PER_S)
COUNTED = ConcurrencyLoad((4,), warmup_ns=0, requests=100)
SCENARIO = Scenario(
    name="plan",
    targets=(Target("a", launch="mock", model="m"), Target("b", url="http://h/v1", model="n")),
    load=(TIMED, COUNTED),
    workload=Workload(
        input_tokens=TokenCount("fixed", 512), output_tokens=TokenCount("uniform", 72, 0, 16, 128)
    ),
    repeats=2,
)


def order(scenario: Scenario) -> list[tuple[str, int, int]]:
    return [(cell.target, cell.repeat, cell.level) for cell in cells(scenario)]


def test_interleaved_targets_alternate_within_each_repeat() -> None:
    assert order(SCENARIO) == [
        ("a", 0, 1), ("a", 0, 8), ("a", 0, 4), ("b", 0, 1), ("b", 0, 8), ("b", 0, 4),
        ("a", 1, 1), ("a", 1, 8), ("a", 1, 4), ("b", 1, 1), ("b", 1, 8), ("b", 1, 4),
    ]  # fmt: skip


def test_sequential_targets_come_one_after_another() -> None:
    assert order(replace(SCENARIO, order="sequential")) == [
        ("a", 0, 1), ("a", 0, 8), ("a", 0, 4), ("a", 1, 1), ("a", 1, 8), ("a", 1, 4),
        ("b", 0, 1), ("b", 0, 8), ("b", 0, 4), ("b", 1, 1), ("b", 1, 8), ("b", 1, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["interleaved", "sequential"])
def test_every_target_gets_the_same_prompts_and_none_twice(how: str) -> None:
    planned = cells(replace(SCENARIO, order=how))  # type: ignore[arg-type]
    seqs = {name: [cell.first_seq for cell in planned if cell.target == name] for name in ("a", "b")}
    assert seqs["a"] == seqs["b"] == [i * CELL_SEQ for i in range(6)]


def test_a_cell_carries_the_terms_of_its_load() -> None:
    first, _, third = cells(SCENARIO)[:3]
    assert (first.load, first.warmup_ns, first.duration_ns, first.requests) == (
        "concurrency", 10 * NS_PER_S, 60 * NS_PER_S, None,
    )  # fmt: skip
    assert (third.warmup_ns, third.duration_ns, third.requests) == (0, None, 100)


def test_files_of_different_cells_have_different_names() -> None:
    planned = cells(SCENARIO)
    assert len({cell.file_stem for cell in planned}) == len(planned)


def test_what_cannot_be_known_is_none_not_zero() -> None:
    timed, _, counted = estimate(SCENARIO)[:3]
    assert timed == PlanRow("a", "concurrency", 1, 2, 140 * NS_PER_S, None, None, None)
    assert counted == PlanRow("a", "concurrency", 4, 2, None, 200, 102_400, 14_400)


def test_the_table_shows_both_and_fits_80_columns() -> None:
    assert (
        plan_table(replace(SCENARIO, targets=SCENARIO.targets[:1]))
        == """\
plan: 6 cells (interleaved, seed 7)
  a: m on mock (process)
  each request: 512 tokens in, 72 out on average

target                    users  repeats     time requests  tokens in tokens out
a                             1        2     2:20        ?          ?          ?
a                             8        2     2:20        ?          ?          ?
a                             4        2        ?      200    102,400     14,400
total                                      4:40+?    200+?  102,400+?   14,400+?

?: measured by time, so as many as the target can take
?: measured by count, so as long as the target takes
Warm-up requests are not counted; starting engines and finishing the last
requests of each level take more time."""
    )


def test_the_table_shows_the_address_that_will_be_asked() -> None:
    assert "  b: n at http://h/v1/chat/completions\n" in plan_table(SCENARIO)


def test_names_of_any_length_keep_the_table_in_80_columns() -> None:
    long = replace(SCENARIO, targets=(Target("t" * 100, launch="mock", model="m"),), repeats=50)
    assert max(len(line) for line in plan_table(long).splitlines()) <= 80


@pytest.mark.parametrize(
    ("scenario", "shown"),
    [
        (
            replace(SCENARIO, load=(replace(TIMED, warmup_ns=0, duration_ns=NS_PER_S // 2),), repeats=1),
            "500ms",
        ),
        (replace(SCENARIO, load=(TIMED,), repeats=100), "1:56:40"),
    ],
)
def test_times_are_shown_as_a_clock_does(scenario: Scenario, shown: str) -> None:
    assert f" {shown} " in plan_table(scenario)


def test_public_targets_are_named_unless_allowed() -> None:
    public = replace(
        SCENARIO, targets=(*SCENARIO.targets, Target("c", url="http://api.example.com/v1", model="m"))
    )
    assert public_targets(SCENARIO) == []
    assert public_targets(public) == ["c"]
    assert public_targets(replace(public, allow_public=True)) == []


@pytest.mark.parametrize(
    ("gpus", "shown"),
    [(None, "(container)"), ((0, "GPU-1"), "(container, GPUs 0, GPU-1)"), ((), "GPUs none)")],
)
def test_the_plan_names_the_gpus_of_a_target(gpus: tuple[int | str, ...] | None, shown: str) -> None:
    target = Target("a", launch="vllm", via="container", model="m", gpus=gpus)
    scenario = Scenario("s", (target,), (ConcurrencyLoad((1,), duration_ns=NS_PER_S),))
    assert shown in plan_table(scenario)
