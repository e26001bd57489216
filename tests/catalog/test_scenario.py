"""What a scenario file says is what the Scenario holds, and what is printed reads back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from enginebench.catalog.scenario import (
    UrlOptions,
    load_scenario,
    plain_scenario,
    scenario_from_options,
    to_yaml,
)
from enginebench.catalog.scenario_keys import known_keys
from enginebench.model.request import Sampling
from enginebench.model.scenario import ConcurrencyLoad, Scenario, Target, Timeouts, TokenCount, Workload
from enginebench.units import NS_PER_MS, NS_PER_S

SMALL = """\
targets: [{name: a, launch: mock, model: m}, {name: b, url: "http://127.0.0.1:1", model: n}]
load: {levels: [1, 8]}
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, *overrides: str, only: tuple[str, ...] = ()) -> Scenario:
    Path("small.yaml").write_text(text)
    return load_scenario("small.yaml", overrides, only)


def test_the_smallest_scenario_gets_the_defaults() -> None:
    assert read(SMALL) == Scenario(
        name="small",
        targets=(
            Target("a", launch="mock", model="m"),
            Target("b", url="http://127.0.0.1:1/v1", model="n"),
        ),
        load=(ConcurrencyLoad(levels=(1, 8), warmup_ns=10 * NS_PER_S, duration_ns=60 * NS_PER_S),),
    )


FULL = """\
name: full
targets:
  - name: started
    launch: mock
    via: process
    model: ${MODEL}
    endpoint: completions
    options: {max_num_seqs: 8, base_ms: 1.5}
    env: {THREADS: "4", DOLLARS: "$${x} $5 $$"}
    dialect: vllm
    start_timeout: 90s
  - name: attached
    url: http://[::1]:8000/v1/chat/completions
    api_key_env: SOME_KEY
    model: m
workload:
  kind: synthetic
  input_tokens: {mean: 512, stdev: 100, min: 16, max: 2048}
  output_tokens: {uniform: [16, 128]}
  language: chinese
  unique_prompts: off
  sampling: {temperature: null, ignore_eos: no}
load:
  - {kind: concurrency, levels: [4], warmup: 0, requests: 1e3}
  - {levels: [1, 2], duration: 1.5m, warmup: 500ms}
repeats: 5
order: sequential
timeouts: {first_token: 10s, idle: 5, total: 1h}
client: socket
workers: 1
seed: 0
keep_text: true
allow_public: yes
"""


def test_every_key_reaches_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "org/model")
    started = Target(
        "started",
        launch="mock",
        model="org/model",
        endpoint="completions",
        options={"max_num_seqs": 8, "base_ms": 1.5},
        env={"THREADS": "4", "DOLLARS": "${x} $5 $$"},
        dialect="vllm",
        start_timeout_ns=90 * NS_PER_S,
    )
    attached = Target("attached", url="http://[::1]:8000/v1", api_key_env="SOME_KEY", model="m")
    assert read(FULL) == Scenario(
        name="full",
        targets=(started, attached),
        workload=Workload(
            input_tokens=TokenCount("normal", 512, 100, low=16, high=2048),
            output_tokens=TokenCount("uniform", 72, low=16, high=128),
            language="chinese",
            unique_prompts=False,
            sampling=Sampling(temperature=None, ignore_eos=False),
        ),
        load=(
            ConcurrencyLoad((4,), warmup_ns=0, requests=1000),
            ConcurrencyLoad((1, 2), warmup_ns=500 * NS_PER_MS, duration_ns=90 * NS_PER_S),
        ),
        repeats=5,
        order="sequential",
        timeouts=Timeouts(10 * NS_PER_S, 5 * NS_PER_S, 3600 * NS_PER_S),
        client="socket",
        workers=1,
        seed=0,
        keep_text=True,
        allow_public=True,
    )


def test_what_is_printed_reads_back_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "org/model")
    scenario = read(FULL)
    assert read(to_yaml(scenario)) == scenario


def test_the_plain_form_is_json_that_reads_back_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "org/model")
    for text in (SMALL, FULL.replace("$${x}", "")):
        scenario = read(text)
        assert read(json.dumps(plain_scenario(scenario))) == scenario


def test_the_printed_form_is_short_but_says_what_decides_a_result() -> None:
    printed = to_yaml(read(SMALL, "load.0.duration=5s"))
    assert printed == (
        "name: small\n"
        "targets:\n"
        "- {name: a, launch: mock, model: m}\n"
        "- {name: b, url: 'http://127.0.0.1:1/v1', model: n}\n"
        "workload: {input_tokens: 512, output_tokens: 128}\n"
        "load:\n"
        "- kind: concurrency\n"
        "  levels: [1, 8]\n"
        "  warmup: 10s\n"
        "  duration: 5s\n"
        "repeats: 1\n"
        "seed: 7\n"
    )


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
COUNTS = (
    st.integers(1, 10**7).map(lambda n: TokenCount("fixed", n))
    | st.tuples(st.integers(1, 500), st.integers(500, 9999)).map(
        lambda ends: TokenCount("uniform", sum(ends) / 2, low=ends[0], high=ends[1])
    )
    | st.tuples(st.integers(1, 9), st.floats(10, 99), st.floats(0, 99), st.integers(100, 999)).map(
        lambda drawn: TokenCount("normal", drawn[1], drawn[2], drawn[0], drawn[3])
    )
)


@settings(deadline=None, max_examples=60)
@given(TEXTS, TEXTS, COUNTS, COUNTS, st.integers(1, 10**15))
def test_any_text_length_and_duration_survives_printing(
    model: str, option: str, asked: TokenCount, answered: TokenCount, duration_ns: int
) -> None:
    scenario = Scenario(
        name="x",
        targets=(Target("t", launch="mock", model=model, options={"truth": option}),),
        workload=Workload(input_tokens=asked, output_tokens=answered),
        load=(ConcurrencyLoad((1,), duration_ns=duration_ns),),
    )
    Path("printed.yaml").write_text(to_yaml(scenario))
    assert load_scenario("printed.yaml") == scenario


def test_the_shipped_quickstart_takes_at_most_a_minute() -> None:
    scenario = load_scenario("quickstart")
    total_ns = sum(len(load.levels) * (load.warmup_ns + (load.duration_ns or 0)) for load in scenario.load)
    assert scenario.load[0].levels == (1, 2, 4, 8, 16, 32, 64)
    assert total_ns * scenario.repeats <= 60 * NS_PER_S


@pytest.mark.parametrize(
    ("override", "check"),
    [
        ("load.0.duration=10s", lambda s: s.load[0].duration_ns == 10 * NS_PER_S),
        ("load.0.levels=[3]", lambda s: s.load[0].levels == (3,)),
        ("load.0.levels.1=9", lambda s: s.load[0].levels == (1, 9)),
        ("workload.output_tokens=64", lambda s: s.workload.output_tokens == TokenCount("fixed", 64)),
        ("workload.sampling.temperature=0.5", lambda s: s.workload.sampling.temperature == 0.5),
        ("targets.1.model=z", lambda s: s.targets[1].model == "z"),
        ("targets.a.options.max_num_seqs=4", lambda s: s.targets[0].options == {"max_num_seqs": 4}),
        ("targets.b.url=http://h/x=y", lambda s: s.targets[1].url == "http://h/x=y"),
        ("name=other", lambda s: s.name == "other"),
        ("targets.a.model=${HOME_GROWN}", lambda s: s.targets[0].model == "grown"),
    ],
)
def test_an_override_sets_the_value_at_its_path(
    override: str, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_GROWN", "grown")
    assert not check(read(SMALL))
    assert check(read(SMALL, override))


def test_later_overrides_win_and_null_unsets() -> None:
    scenario = read(
        SMALL + "repeats: 2\n", "repeats=3", "repeats=4", "load.0.requests=5", "load.0.duration=null"
    )
    assert scenario.repeats == 4
    assert scenario.load[0].requests == 5
    assert scenario.load[0].duration_ns is None


def test_only_keeps_the_named_targets_in_the_order_of_the_file() -> None:
    assert [t.name for t in read(SMALL, only=("b",)).targets] == ["b"]
    assert [t.name for t in read(SMALL, only=("b", "a")).targets] == ["a", "b"]


def test_a_number_in_a_variable_counts_as_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("N", "3")
    scenario = read(SMALL + "repeats: ${N}\nworkload: {input_tokens: '${N}2'}\n")
    assert scenario.repeats == 3
    assert scenario.workload.input_tokens == TokenCount("fixed", 32)


def test_a_scenario_may_be_json_on_one_line() -> None:
    text = '{"targets":[{"name":"a","launch":"mock","model":"m"}],"load":{"levels":[1]}}'
    assert read(text).targets == (Target("a", launch="mock", model="m"),)


def test_an_alias_shares_values_between_targets() -> None:
    scenario = read(
        "targets:\n"
        "  - {name: a, launch: mock, model: m, options: &same {max_num_seqs: 4}}\n"
        "  - {name: b, launch: mock, model: m, options: *same}\n"
        "load: {levels: [1]}\n"
    )
    assert scenario.targets[0].options == scenario.targets[1].options == {"max_num_seqs": 4}


def test_options_make_a_scenario_of_one_endpoint() -> None:
    options = UrlOptions(
        "http://localhost:8000/",
        "m",
        concurrency="1, 8,64",
        endpoint="completions",
        api_key_env="SOME_KEY",
        input_tokens=100,
        output_tokens=10,
        duration="30s",
        warmup="5s",
    )
    scenario = scenario_from_options(options, ["repeats=2"])
    target = Target(
        "endpoint", url="http://localhost:8000/v1", model="m", endpoint="completions", api_key_env="SOME_KEY"
    )
    assert scenario == Scenario(
        name="url",
        targets=(target,),
        workload=Workload(input_tokens=TokenCount("fixed", 100), output_tokens=TokenCount("fixed", 10)),
        load=(ConcurrencyLoad((1, 8, 64), warmup_ns=5 * NS_PER_S, duration_ns=30 * NS_PER_S),),
        repeats=2,
    )
    assert read(to_yaml(scenario)) == scenario


def test_options_left_out_take_the_defaults_of_a_file() -> None:
    scenario = scenario_from_options(UrlOptions("http://h", "m"))
    assert scenario.workload == Workload()
    assert scenario.load == (ConcurrencyLoad((1, 8, 64), duration_ns=60 * NS_PER_S),)


@pytest.mark.parametrize("kind", [Scenario, Target, Workload, ConcurrencyLoad, Timeouts, Sampling])
def test_known_keys_are_the_names_that_pydantic_takes(kind: type) -> None:
    def written(name: str, hint: Any) -> str:
        infos = [extra for extra in get_args(hint) if isinstance(extra, FieldInfo)]
        return next((info.alias for info in infos if info.alias), name)

    hints = get_type_hints(kind, include_extras=True)
    assert known_keys(kind) == [written(n, h) for n, h in hints.items() if not n.startswith("__")]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("## Keys at the top", Scenario),
        ("## Targets", Target),
        ("## Workload", Workload),
        ("### Sampling", Sampling),
        ("## Load", ConcurrencyLoad),
        ("## Timeouts", Timeouts),
    ],
)
def test_the_scenarios_page_lists_every_key(heading: str, kind: type) -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    section = page.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == sorted(known_keys(kind))


def test_the_example_on_the_scenarios_page_reads() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    scenario = read(page.partition("```yaml\n")[2].partition("```")[0])
    assert [target.name for target in scenario.targets] == ["here", "there"]
