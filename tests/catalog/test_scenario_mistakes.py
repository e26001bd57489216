"""Whatever a person can get wrong in a scenario is one line that says where, what, and what to do."""
# ruff: noqa: E501  (an answer stands on one line, as a person sees it)

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enginebench.catalog.scenario import UrlOptions, load_scenario, plain_scenario, scenario_from_options
from enginebench.errors import ConfigError

KEY = "sk-test-0123456789abcdefDONOTLOG"
TARGETS = "targets:\n  - {name: a, launch: mock, model: m}\n"
LOAD = "load: {levels: [1]}\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ABSENT", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SMUGGLED", KEY)


def refusal(text: str, overrides: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> str:
    Path("s.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_scenario("s.yaml", overrides, only)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message
    assert KEY not in message
    return message


def _rows(table: str) -> list[tuple[str, str]]:
    """Pairs of lines: what is written, and what is answered."""
    lines = [line.strip() for line in table.strip().splitlines() if line.strip()]
    return list(zip(lines[::2], lines[1::2], strict=True))


TOP = r"""
laod: {levels: [1]}
4:1: unknown key 'laod'; did you mean 'load'?
duration: 10s
4:1: unknown key 'duration'; it belongs under `load`
repeats: many
4:1: `repeats` must be a whole number, not "many"
repeats: 1.5
4:1: `repeats` must be a whole number, not 1.5
repeats: true
4:1: `repeats` cannot be true
repeats: 0
4:1: `repeats` must be from 1 to 1000, not 0
seed: -1
4:1: `seed` must be from 0 to 2^63 - 1, not -1
name: a b
4:1: name 'a b' is used in file names: letters, digits, - _ . only, a letter or digit first
name: ../x
4:1: name '../x' is used in file names: letters, digits, - _ . only, a letter or digit first
name: 7
4:1: `name` must be text, not 7; put it in quotes
order: interleaf
4:1: `order` cannot be "interleaf"; did you mean 'interleaved'?
client: curl
4:1: `client` cannot be "curl"; known here: auto, socket
client: httpx
4:1: client 'httpx' is not in this version yet; use `client: auto`
workers: 4
4:1: more than one worker is not in this version yet; use `workers: auto`; one carries some 45,000 chunks a second
workers: 0
4:1: `workers` must be auto or 1, not 0
workers: some
4:1: `workers` cannot be "some"; known here: auto
slo: {ttft_p99: 500ms}
4:1: `slo` is not in this version yet; leave it out: the report has every percentile
fleet: ray
4:1: `fleet` is not in this version yet; leave it out: the load comes from this machine
together: true
4:1: `together` is not in this version yet; leave it out: targets are measured one after another
keep_text: 3
4:1: `keep_text` must be true or false, not 3
timeouts:
4:1: `timeouts` must be `key: value` lines, not null
timeouts: {first_token: 20m}
4:12: `first_token` (20m) is longer than `total` (10m)
timeouts: {total: 30s}
4:1: `first_token` (2m) is longer than `total` (30s)
timeouts: {total: 40000h}
4:12: `total` is longer than 30 days
timeouts: {idle: 0}
4:12: `idle` must be longer than 0
timeouts: {idle: soon}
4:12: `idle` cannot be used: 'soon' is not a duration; write a number with a unit, such as 10s or 500ms
timeouts: {ilde: 5s}
4:12: unknown key 'ilde'; did you mean 'idle'?
workload: {kind: jsonl}
4:12: workload kind 'jsonl' is not in this version yet; use `kind: synthetic`
workload: {kind: magic}
4:12: `kind` cannot be "magic"; known here: synthetic
workload: {language: klingon}
4:12: `language` cannot be "klingon"; known here: chinese, code, english
workload: {tokenizer: nowhere/tokenizer.json}
4:12: no tokenizer at nowhere/tokenizer.json: write the path of a tokenizer.json, or of a folder with one
workload: {unique_prompts: maybe}
4:12: `unique_prompts` must be true or false, not "maybe"
workload: {temperature: 0}
4:12: unknown key 'temperature'; it belongs under `workload.sampling`
workload: {sampling: {temperature: 9}}
4:23: `temperature` must be from 0 to 2, not 9
workload: {sampling: {top_p: 1}}
4:23: unknown key 'top_p'; known here: ignore_eos, temperature
workload: {input_tokens: 0}
4:12: `input_tokens`: it must be a whole number of tokens from 1 to 10000000, not 0
workload: {input_tokens: many}
4:12: `input_tokens`: it must be a number of tokens, {mean, stdev, min, max} or {uniform: [a, b]}
workload: {input_tokens: true}
4:12: `input_tokens` cannot be true
workload: {output_tokens: {mean: 5}}
4:12: `output_tokens`: `stdev` is missing; a normal length needs mean and stdev
workload: {input_tokens: {mean: 5, sd: 2}}
4:12: `input_tokens`: unknown key 'sd'; known here: max, mean, min, stdev, uniform
workload: {input_tokens: {mean: 5, stdev: -2}}
4:12: `input_tokens`: stdev must be 0 or more, not -2
workload: {input_tokens: {mean: 5, stdev: 2, min: 10}}
4:12: `input_tokens`: mean must lie between min and max, and 5 does not
workload: {input_tokens: {mean: .nan, stdev: 2}}
4:27: `mean` cannot be NaN
workload: {input_tokens: {uniform: [10, 5]}}
4:12: `input_tokens`: the lowest of a uniform length comes first: [5, 10]
workload: {input_tokens: {uniform: 5}}
4:12: `input_tokens`: a uniform length is written {uniform: [lowest, highest]}
"""


@pytest.mark.parametrize(("line", "answer"), _rows(TOP))
def test_a_mistake_in_a_setting_is_answered(line: str, answer: str) -> None:
    assert refusal(TARGETS + LOAD + line + "\n") == f"s.yaml:{answer}"


TARGET = r"""
[]
3:1: there is no target: name at least one, with `launch` or `url`
{a: {launch: mock}}
3:1: `targets` must be a list in [brackets], not {"a": {"launch": "mock"}}
[mock]
3:11: `targets.0` must be `key: value` lines, not "mock"
[{launch: mock, model: m}]
3:11: `name` is missing
[{name: a/b, launch: mock, model: m}]
3:12: name 'a/b' is used in file names: letters, digits, - _ . only, a letter or digit first
[{name: a, model: m}]
3:11: a target needs either `launch` (we start it) or `url` (we attach); this has neither
[{name: a, model: m, launch: mock, url: "http://h/v1"}]
3:11: a target needs either `launch` (we start it) or `url` (we attach); this has both
[{name: a, launch: mock}]
3:11: `model` is missing: the name that the engine serves, or the model to start it with
[{name: a, launch: mock, mdoel: m}]
3:35: unknown key 'mdoel'; did you mean 'model'?
[{name: a, launch: mock, model: 7}]
3:35: `model` must be text, not 7; put it in quotes
[{name: a, launch: mok, model: m}]
3:21: no launcher 'mok': there is no such file, and none is shipped under that name; did you mean mock? (`enginebench list engines` shows them all)
[{name: a, launch: mock, model: m, via: container}]
3:45: mock has no form 'container'; known here: process
[{name: a, launch: mock, model: m, via: wheel}]
3:45: mock has no form 'wheel'; known here: process
[{name: a, launch: mock, model: m, options: {max_num_sqs: 3}}]
3:55: mock via process has no option 'max_num_sqs'; did you mean 'max_num_seqs'?
[{name: a, launch: mock, model: m, env: {THREADS: 4}}]
3:51: `THREADS` must be text, not 4; put it in quotes
[{name: a, launch: mock, model: m, gpus: [first]}]
3:45: a GPU is named by its index or its UUID, as `nvidia-smi -L` shows them, not 'first'
[{name: a, launch: mock, model: m, gpus: [1, 1]}]
3:45: GPU 1 stands twice
[{name: a, launch: mock, model: m, gpus: 0}]
3:45: `gpus` must be a list in [brackets], not 0
[{name: a, url: "http://localhost:1", model: m, gpus: [0]}]
3:58: `gpus` is for engines that enginebench starts; a target with `url` has none
[{name: a, launch: mock, model: m, readiness: {health: up}}]
3:57: a health path begins with a slash: /up
[{name: a, launch: mock, model: m, readiness: {model: false}}]
3:57: unknown key 'model'; it belongs under `targets`
[{name: a, launch: custom, model: m}]
3:11: custom needs the words that start it: command: [my-server, --port, "{port}"]
[{name: a, simulate: mock, model: m}]
3:21: `simulate` is not in this version yet; use `launch: mock`
[{name: a, url: "http://h/v1", model: m, price: {input: 1}}]
3:51: `price` is not in this version yet; leave it out: costs are not computed
[{name: a, url: "http://h/v1", model: m, budget: {usd: 1}}]
3:51: `budget` is not in this version yet; leave it out and bound the run with `requests`
[{name: a, url: "http://h/v1", model: m, metrics_url: null}]
3:51: `metrics_url` is not in this version yet; leave it out
[{name: a, url: "http://h/v1", model: m, headers: {X: y}}]
3:51: `headers` is not in this version yet; leave it out; a key goes by `api_key_env`
[{name: a, url: "http://h/v1", model: m, endpoint: messages}]
3:51: endpoint 'messages' is not in this version yet; use chat or completions
[{name: a, url: "http://h/v1", model: m, endpoint: completion}]
3:51: `endpoint` cannot be "completion"; did you mean 'completions'?
[{name: a, url: ["http://h/v1", "http://i/v1"], model: m}]
3:21: a list of URLs is not in this version yet; name one target for each URL
[{name: a, url: "https://h/v1", model: m}]
3:21: `url` cannot be used: https is not in this version yet; measure the engine's own http port, or put a proxy that ends TLS in front of it
[{name: a, url: "http://h/v1?x=1", model: m}]
3:21: `url` cannot be used: a query (?...) or fragment (#...) is not in this version yet; end it before that
[{name: a, url: "h:80/v1", model: m}]
3:21: `url` cannot be used: it must begin with http://, such as http://h:80/v1
[{name: a, url: "http://h/v1", model: m, options: {x: 1}}]
3:51: `options` is for engines that enginebench starts; a target with `url` has none
[{name: a, url: "http://h/v1", model: m, via: wheel}]
3:51: `via` is for engines that enginebench starts; a target with `url` has none
[{name: a, url: "http://h/v1", model: m, dialect: vlm}]
3:51: no dialect 'vlm'; did you mean 'vllm'?
[{name: a, url: "http://h/v1", model: m}, {name: a, url: "http://i/v1", model: m}]
3:53: target name a stands twice
[{name: a, url: "http://h/v1", model: "${ABSENT}"}]
3:41: the environment variable ABSENT is not set
[{name: a, url: "http://h/v1", model: "${ABSENT:-m}"}]
3:41: '${ABSENT:-m}' is not a variable; write ${NAME}, or $${ for a plain ${
[{name: a, url: "http://h/v1", model: "${ABSENT"}]
3:41: '${ABSENT' is not a variable; write ${NAME}, or $${ for a plain ${
"""


@pytest.mark.parametrize(("targets", "answer"), _rows(TARGET))
def test_a_mistake_in_a_target_is_answered(targets: str, answer: str) -> None:
    assert refusal(f"name: t\n{LOAD}targets: {targets}\n") == f"s.yaml:{answer}"


LOADS = r"""
[]
4:1: there is no load: give at least one, such as {levels: [1, 8, 64]}
{kind: concurrency}
4:1: `levels` is missing
{levels: []}
5:4: `levels` is empty: give at least one, such as [1, 8, 64]
{levels: 8}
5:4: `levels` must be a list in [brackets], not 8
{levels: [0]}
5:4: a concurrency level is from 1 to 65536, not 0
{levels: [1, 2, 2]}
5:4: concurrency level 2 stands twice
{levels: [1, x]}
5:16: `levels.1` must be a whole number, not "x"
[{levels: [1]}, {levels: [1, 2]}]
5:20: concurrency level 1 stands twice
{levels: [1], duration: 5s, requests: 5}
5:31: give `duration` or `requests`, not both (null unsets one)
{levels: [1], duration: 0}
5:17: `duration` must be longer than 0
{levels: [1], duration: 5 parsecs}
5:17: `duration` cannot be used: '5 parsecs' is not a duration; write a number with a unit, such as 10s or 500ms
{levels: [1], duration: -5}
5:17: `duration` cannot be used: a duration cannot be negative, or longer than 292 years
{levels: [1], warmup: [1]}
5:17: `warmup` cannot be used: [1] is not a duration; write a number with a unit, such as 10s or 500ms
{levels: [1], requests: 0}
5:17: `requests` must be from 1 to 2147483647, not 0
{levels: [1], duraton: 5s}
5:17: unknown key 'duraton'; did you mean 'duration'?
{levels: [1], seed: 4}
5:17: unknown key 'seed'; it belongs at the top of the file
{kind: concurency, levels: [1]}
5:4: `kind` cannot be "concurency"; did you mean 'concurrency'?
{kind: rate, per_second: 5}
5:4: load kind 'rate' is not in this version yet; use `kind: concurrency`
[{levels: [1]}, {kind: ramp}]
5:20: load kind 'ramp' is not in this version yet; use `kind: concurrency`
"""


@pytest.mark.parametrize(("load", "answer"), _rows(LOADS))
def test_a_mistake_in_a_load_is_answered(load: str, answer: str) -> None:
    assert refusal(f"name: t\n{TARGETS}load:\n  {load}\n") == f"s.yaml:{answer}"


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("load.0.kind", "rate burst ramp trace sessions capacity"),
        ("workload.kind", "jsonl sharegpt"),
        ("client", "httpx openai openai_sdk"),
        ("targets.0.endpoint", "responses messages generate_stream"),
        ("targets.0.via", "ray"),
    ],
)
def test_what_a_later_version_will_do_is_refused_by_name(path: str, values: str) -> None:
    for value in values.split():
        message = refusal(TARGETS + LOAD, (f"{path}={value}",))
        assert message.startswith(f"--set {path}: ")
        assert f"{value!r} is not in this version yet; use " in message


SETS = r"""
load.0.duration
--set takes KEY=VALUE, such as --set load.0.duration=10s
=3
--set takes KEY=VALUE, such as --set load.0.duration=10s
load.0.duration=5x
--set load.0.duration: `duration` cannot be used: '5x' is not a duration; write a number with a unit, such as 10s or 500ms
load.0.duraton=5s
--set load.0.duraton: unknown key 'duraton'; did you mean 'duration'?
laod.0.duration=5s
--set laod.0.duration: unknown key 'laod'; did you mean 'load'?
load.1.duration=5s
--set load.1.duration: the list has no item '1'; known here: 0
load.0.levels.0.x=5
--set load.0.levels.0.x: 'x' leads nowhere, because what stands above it has no keys
targets.b.model=z
--set targets.b.model: the list has no item 'b'; known here: 0, a
repeats=
--set repeats: `repeats` must be a whole number, not null
repeats=0
--set repeats: `repeats` must be from 1 to 1000, not 0
seed=${ABSENT}
--set seed: the environment variable ABSENT is not set
load.0.levels=[1
--set load.0.levels:1:3: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'
"""


@pytest.mark.parametrize(("override", "answer"), _rows(SETS))
def test_a_mistake_in_an_override_is_blamed_on_it(override: str, answer: str) -> None:
    assert refusal(TARGETS + LOAD, (override,)) == answer


def test_an_unknown_target_of_only_is_answered_with_the_known_ones() -> None:
    assert refusal(TARGETS + LOAD, only=("b",)) == "--only b: the scenario has no such target; known here: a"


REFERENCE = "write `api_key_env: NAME` (of a variable) or `api_key_file: PATH` in the target"
EXPORT = "export it in the shell instead: engines inherit its environment"


@pytest.mark.parametrize(
    ("fields", "name", "advice"),
    [
        (f"api_key: {KEY}", "targets.0.api_key", REFERENCE),
        ("api_key: x", "targets.0.api_key", REFERENCE),
        (f"api_key_env: {KEY}", "targets.0.api_key_env", REFERENCE),
        (f"model: {KEY}", "targets.0.model", REFERENCE),
        ("model: '${SMUGGLED}'", "targets.0.model", REFERENCE),
        ("env: {HF_TOKEN: x}", "targets.0.env.HF_TOKEN", EXPORT),
        ("env: {MY_SECRET: x}", "targets.0.env.MY_SECRET", EXPORT),
        ("options: {api-key: x}", "targets.0.options.api-key", EXPORT),
        ("options: {hf_token: x}", "targets.0.options.hf_token", EXPORT),
        ("options: {extra_args: [--api-key, x]}", "targets.0.options.extra_args.0", EXPORT),
        ("options: {extra_args: [--api-key=x]}", "targets.0.options.extra_args.0", EXPORT),
        (f"options: {{extra_args: [--x, {KEY}]}}", "targets.0.options.extra_args.1", EXPORT),
    ],
)
def test_a_secret_by_value_is_refused_and_never_repeated(fields: str, name: str, advice: str) -> None:
    text = f"targets: [{{name: a, url: 'http://h/v1', {fields}}}]\n{LOAD}"
    assert (
        refusal(text).partition(": ")[2]
        == f"`{name}` holds a secret, and would be stored with the run; {advice}"
    )


def test_a_secret_in_an_override_is_not_repeated_either() -> None:
    assert "holds a secret" in refusal(TARGETS + LOAD, (f"targets.0.api_key={KEY}",))
    assert refusal(TARGETS + LOAD, (KEY,)).startswith("--set takes KEY=VALUE")


def test_a_variable_whose_name_says_secret_is_refused_whatever_it_holds() -> None:
    message = refusal(f"targets: [{{name: a, launch: mock, model: '${{OPENAI_API_KEY}}'}}]\n{LOAD}")
    assert message == (
        "s.yaml:1:35: ${OPENAI_API_KEY} would store a secret with the run; "
        "write `api_key_env: OPENAI_API_KEY` in the target"
    )


def test_a_key_pasted_where_a_variable_belongs_is_not_repeated() -> None:
    message = refusal(f"targets: [{{name: a, url: 'http://h', model: m, api_key_env: my-own-key}}]\n{LOAD}")
    assert message.endswith("`api_key_env` is the name of an environment variable, not the key itself")
    assert "my-own-key" not in message


@pytest.mark.parametrize(
    "name", ["max_num_batched_tokens", "tokenizer", "first_token", "ssl_keyfile", "eos_token"]
)
def test_a_name_that_only_sounds_like_a_secret_is_not_taken_for_one(name: str) -> None:
    message = refusal(f"targets: [{{name: a, launch: mock, model: m, options: {{{name}: x}}}}]\n{LOAD}")
    assert f"mock via process has no option {name!r}" in message


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (
            UrlOptions("http://h", None),
            "--url needs --model: the name under which the endpoint serves its model",
        ),
        (
            UrlOptions("h:80", "m"),
            "--url: `url` cannot be used: it must begin with http://, such as http://h:80",
        ),
        (
            UrlOptions("http://h", "m", concurrency="1,x"),
            '--concurrency: `levels.1` must be a whole number, not "x"',
        ),
        (
            UrlOptions("http://h", "m", concurrency="0"),
            "--concurrency: a concurrency level is from 1 to 65536, not 0",
        ),
        (
            UrlOptions("http://h", "m", endpoint="chats"),
            "--endpoint: `endpoint` cannot be \"chats\"; did you mean 'chat'?",
        ),
        (
            UrlOptions("http://h", "m", duration="x"),
            "--duration: `duration` cannot be used: 'x' is not a duration; "
            "write a number with a unit, such as 10s or 500ms",
        ),
        (
            UrlOptions("http://h", "m", input_tokens=0),
            "--input-tokens: `input_tokens`: it must be a whole number of tokens from 1 to 10000000, not 0",
        ),
        (
            UrlOptions("http://h", "m", api_key_env="not-a-name"),
            "--api-key-env: `api_key_env` is the name of an environment variable, not the key itself",
        ),
    ],
)
def test_a_mistake_in_an_option_is_blamed_on_it(options: UrlOptions, answer: str) -> None:
    with pytest.raises(ConfigError) as caught:
        scenario_from_options(options)
    assert str(caught.value) == answer


def test_a_fault_in_a_launcher_file_names_both_files() -> None:
    Path("mine.yaml").write_text("id: mine\ntitle: Mine\nforms: {}\n")
    message = refusal(f"targets: [{{name: a, launch: mine.yaml, model: m}}]\n{LOAD}")
    assert message.startswith("s.yaml:1:21: mine.yaml:3:1: no form")


STRANGE: tuple[object, ...] = (
    None, True, -1, 2.5, 1e300, 10**30, "", "x", "1s", "a" * 500, "${X", "http://[", "~nobody/x", "..",
    [], [[1]], [None], {}, {"kind": "x"}, {"uniform": [1, 2]}, {"mean": 1},
)  # fmt: skip


def _places(value: object, loc: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield loc
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, (*loc, key))


def test_a_strange_value_anywhere_is_read_or_refused_in_one_line() -> None:
    whole = plain_scenario(scenario_from_options(UrlOptions("http://h", "m", api_key_env="K", duration="1s")))
    del whole["workload"]["tokenizer"]
    answers = []
    pairs = itertools.product([loc for loc in _places(whole) if loc], STRANGE)
    for loc, value in itertools.islice(pairs, 0, None, 4):  # 4 and 21 share no factor: every value gets about
        changed = copy.deepcopy(whole)
        above: Any = changed
        for part in loc[:-1]:
            above = above[part]
        above[loc[-1]] = value
        Path("s.yaml").write_text(json.dumps(changed))
        try:
            load_scenario("s.yaml")
        except ConfigError as error:
            answers.append(str(error))
    assert len(answers) > 150
    assert not any("\n" in answer for answer in answers)
