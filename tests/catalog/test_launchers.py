"""Launcher files: read, refused with their place, and turned into commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import enginebench
from enginebench.catalog import shipped
from enginebench.catalog.dialects import dialects, load_dialect
from enginebench.catalog.invocation import (
    Surroundings,
    command,
    completed,
    engines_folder,
    invocation,
    named_options,
    served_name,
)
from enginebench.catalog.launchers import launchers, load_launcher
from enginebench.errors import ConfigError, UserError
from enginebench.model.launcher import Form, Launcher
from enginebench.model.request import Dialect
from enginebench.units import NS_PER_S

SMALL = """\
id: mine
title: My engine
forms:
  process:
    command: [serve, "{model}", --port, "{port}", "--size={size}"]
    options:
      threads: [-t, "{value}"]
    defaults: {size: big}
"""


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as scripts/install-engines makes it."""
    for name in ("llamacpp", "transformers", "vllm"):
        python = tmp_path / "engines" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    model = tmp_path / "engines" / "models" / "tiny.gguf"
    model.parent.mkdir()
    model.touch()
    monkeypatch.setenv("ENGINEBENCH_ENGINES", str(tmp_path / "engines"))
    return tmp_path / "engines"


def launcher_of(**fields: Any) -> Launcher:
    return Launcher("mine", "Mine", {"process": Form(**fields)})


def words(values: dict[str, Any], **fields: Any) -> list[str]:
    return command(launcher_of(**fields), "process", {"model": "m", **values})


def test_every_shipped_launcher_is_usable(engines: Path) -> None:
    found = launchers()
    assert [launcher.id for launcher in found] == shipped.names("launchers")
    for launcher in found:
        for form in launcher.forms:
            words = {"command": ["serve", "--port", "{port}"]} if launcher.id == "custom" else {}
            made = completed(invocation(launcher, form, {"model": "m", **words}), None)
            texts = [*made.argv, *made.env.values()]
            assert any("{port}" in text for text in texts)
            assert not any("{" in text.replace("{port}", "") for text in texts)


def test_the_launchers_that_every_version_has() -> None:
    ids = "custom llamacpp lmdeploy mock ollama sglang tensorrt-llm tgi transformers vllm"
    assert shipped.names("launchers") == ids.split()


def test_a_launcher_says_whether_it_was_run_here_or_read_about(engines: Path) -> None:
    for launcher in launchers():
        assert re.search(r"\b(run|tests)\b", launcher.notes), launcher.id
    assert load_launcher("tgi").status == "maintenance"
    assert "maintenance mode" in load_launcher("tgi").notes


def test_a_launcher_file_of_ones_own_is_read_with_defaults(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL + "start_timeout: 90s\ndialect: llamacpp\n")
    launcher = load_launcher(str(path))
    assert launcher.start_timeout_ns == 90 * NS_PER_S
    assert launcher.readiness.health == "/health"
    assert launcher.dialect == load_dialect("llamacpp")


def test_a_dialect_can_be_spelled_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL + "dialect: {name: mine, max_tokens_field: n}\n")
    assert load_launcher(str(path)).dialect == Dialect(name="mine", max_tokens_field="n")


TITLE = "title: My engine"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (f"{TITLE}\n", "", "1:1", "`title` is missing"),
        ("title:", "titel:", "2:1", "unknown key 'titel'; did you mean 'title'?"),
        ("command:", "comand:", "5:5", "unknown key 'comand'; did you mean 'command'?"),
        (
            "    options:",
            "    flags:",
            "6:5",
            "unknown key 'flags'; known here: command, defaults, env, image, off_options, options, version",
        ),
        ("mine", "My Engine", "1:1", "'My Engine' is not an id; use small letters, digits and hyphens"),
        ('"{model}"', '"{modell}"', "5:22", "unknown placeholder {modell}; did you mean 'model'?"),
        ('"{value}"', '"{val}"', "7:21", "unknown placeholder {val}; did you mean 'value'?"),
        (
            "size: big",
            "height: 3",
            "8:16",
            "a default for an unknown option 'height'; known here: served_name, size, threads",
        ),
        (
            "[-t,",
            "[3,",
            "7:17",
            "`forms.process.options.threads.0`: input should be a valid string (got 3)",
        ),
        (
            TITLE,
            f"{TITLE}\nstart_timeout: soon",
            "3:1",
            "`start_timeout`: 'soon' is not a duration; "
            "write a number with a unit, such as 10s or 500ms (got 'soon')",
        ),
        (TITLE, f"{TITLE}\ncache_reset: flush", "3:1", "a path begins with a slash: /flush"),
        (
            ' --port, "{port}",',
            "",
            "5:5",
            "no word names {port}: the engine must be told where to listen",
        ),
        (
            "    options:",
            "    off_options: {threads: [-x]}\n    options:",
            "6:19",
            "option 'threads' stands under `options` too",
        ),
        (
            "    options:",
            "    image: {name: i, port: 80, mounts: {'{hom}': /x}}\n    options:",
            "6:41",
            "unknown placeholder {hom}; did you mean 'home'?",
        ),
        (TITLE, f"{TITLE}\nbase_path: v1", "3:1", "a base path begins with a slash: /v1"),
        (TITLE, f"{TITLE}\nreadiness: {{health: up}}", "3:13", "a health path begins with a slash: /up"),
        (TITLE, f"{TITLE}\ndialect: lamacpp", "3:1", "no dialect 'lamacpp'; did you mean 'llamacpp'?"),
        (
            TITLE,
            f"{TITLE}\ndialect: {{ignore_oes: true}}",
            "3:11",
            "unknown key 'ignore_oes'; did you mean 'ignore_eos'?",
        ),
    ],
)
def test_a_mistake_in_a_launcher_file_is_named_with_its_place(
    old: str, new: str, place: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    assert SMALL.count(old) == 1
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_launcher(str(path))
    assert str(caught.value) == f"{path}:{place}: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forms: {}", "no form: name at least one way to run the engine, e.g. `process`"),
        ("forms: {process: {command: []}}", "the command is empty"),
    ],
)
def test_a_launcher_without_a_command_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"id: mine\ntitle: Mine\n{text}\n")
    with pytest.raises(ConfigError, match=message):
        load_launcher(str(path))


def test_an_unknown_launcher_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="llamacpp"):
        load_launcher("lamacpp")


def test_every_dialect_carries_its_own_name() -> None:
    assert dialects()["openai"] == Dialect()
    assert all(dialect.name == name for name, dialect in dialects().items())


def test_words_of_a_command_are_filled_and_those_that_name_an_unset_option_left_out() -> None:
    form = {"command": ("serve", "{model}", "--host={host}", "--port={port}", "--size={size}")}
    assert words({}, **form) == ["serve", "m", "--host=127.0.0.1", "--port={port}"]
    assert words({"port": 0}, **form) == words({}, **form)
    assert words({"size": "big", "port": 80, "host": "::"}, **form) == [
        "serve", "m", "--host=::", "--port=80", "--size=big",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        (["-n", "{value}"], 3, ["-n", "3"]),
        (["-n={value}"], 0.85, ["-n=0.85"]),
        (["-n", "{value}"], False, ["-n", "false"]),
        (["-n", "{value}"], {"a": [1]}, ["-n", '{"a": [1]}']),
        (["-n", "{value}"], "{port}", ["-n", "{port}"]),
        (["--on"], True, ["--on"]),
        (["--on"], False, []),
        (["--{no-}on"], True, ["--on"]),
        (["--{no-}on"], False, ["--no-on"]),
        (["-n", "{value}"], None, []),
    ],
)
def test_an_option_becomes_its_words(option: list[str], value: object, expected: list[str]) -> None:
    assert words({"o": value}, command=("e",), options={"o": tuple(option)}) == ["e", *expected]


def test_a_value_is_never_read_as_a_placeholder_of_another_value() -> None:
    form = {"command": ("e",), "options": {"a": ("{value}",), "b": ("{value}",)}}
    assert words({"a": "{b}", "b": "{value}"}, **form) == ["e", "{b}", "{value}"]


def test_options_keep_the_order_of_the_file_and_extra_words_come_last() -> None:
    form = {
        "command": ("e",),
        "options": {"a": ("-a", "{value}"), "b": ("-b", "{value}")},
        "defaults": {"a": 1},
    }
    assert words({"extra_args": ["--x", 5], "b": 2}, **form) == ["e", "-a", "1", "-b", "2", "--x", "5"]


def test_null_unsets_a_default() -> None:
    form = {"command": ("e",), "options": {"a": ("-a", "{value}")}, "defaults": {"a": 1}}
    assert words({"a": None}, **form) == ["e"]


def test_a_product_of_two_options() -> None:
    form = {"command": ("e",), "options": {"n": ("-n", "{value}"), "each": ("-c", "{each*n}")}}
    assert words({"n": 4, "each": 512}, **form) == ["e", "-n", "4", "-c", "2048"]
    with pytest.raises(UserError, match=r"^option each of mine needs n to be set too$"):
        words({"each": 512}, **form)
    with pytest.raises(UserError, match=r"^option each of mine needs a number: "):
        words({"n": 4, "each": "big"}, **form)


def test_json_in_a_word_stays_json() -> None:
    assert words({}, command=("e", '{"rope": {"factor": 2}}')) == ["e", '{"rope": {"factor": 2}}']


OWN_FLAGS = "; its own flags go through `extra_args: [--flag, value]`"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"thread": 2}, f"mine via process has no option 'thread'; did you mean 'threads'?{OWN_FLAGS}"),
        (
            {"zzz": 2},
            "mine via process has no option 'zzz'; "
            f"known here: extra_args, port, served_name, threads, verbose{OWN_FLAGS}",
        ),
        ({"port": "http"}, "option port is a number below 65536, not 'http'"),
        ({"verbose": 3}, "option verbose of mine is a switch: true or false, not '3'"),
        (
            {"extra_args": "--flag"},
            "extra_args of mine is a list of words, e.g. [--flag, value]; got '--flag'",
        ),
        ({"model": None}, "mine needs a model: add `model:` to the target"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        words(values, command=("e",), options={"threads": ("-t", "{value}"), "verbose": ("-v",)})
    assert str(caught.value) == message


def test_a_form_that_the_launcher_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match="mine cannot be run via 'container'; known here: process"):
        command(launcher_of(command=("e",)), "container", {"model": "m"})


def test_environment_and_version_are_filled_too() -> None:
    launcher = launcher_of(
        command=("e",),
        options={"threads": ("-t", "{value}")},
        env={"WHERE": "{host}:{port}", "OMP": "{threads}", "HERE": "{package}"},
        version=("{python}", "--version"),
    )
    made = invocation(launcher, "process", {"model": "m"})
    package = str(Path(enginebench.__file__).parent)
    assert (made.host, made.port) == ("127.0.0.1", 0)
    assert made.env == {"WHERE": "127.0.0.1:{port}", "HERE": package}
    assert made.version_argv == (sys.executable, "--version")


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        ("meta-llama/Llama-3.1-8B", {}, "meta-llama/Llama-3.1-8B"),
        ("/models/tiny.gguf", {}, "tiny"),
        ("tiny.gguf", {}, "tiny"),
        ("{engines}/models/tiny.gguf", {}, "tiny"),
        ("~/models/llama-3", {}, "llama-3"),
        ("./llama-3/", {}, "llama-3"),
        ("/models/tiny.gguf", {"served_name": "mine"}, "mine"),
    ],
)
def test_the_name_that_requests_use(model: str, options: dict[str, str], name: str) -> None:
    assert served_name(model, options) == name


def test_an_engine_of_its_own_environment_is_found(engines: Path) -> None:
    made = invocation(load_launcher("llamacpp"), "wheel", {"model": "{engines}/models/tiny.gguf"})
    assert made.argv[0] == str(engines / "llamacpp" / "bin" / "python")
    assert made.argv[made.argv.index("--model") + 1] == str(engines / "models" / "tiny.gguf")
    assert made.argv[made.argv.index("--alias") + 1] == "tiny"
    assert Path(made.argv[2]).is_file()


@pytest.mark.parametrize("model", ["m", "{engines}/models/tiny.gguf"])
def test_an_engine_that_is_not_installed_is_answered_with_how_to(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINEBENCH_ENGINES", str(tmp_path))
    with pytest.raises(UserError, match=rf"at {tmp_path}/.*; run `scripts/install-engines llamacpp`"):
        command(load_launcher("llamacpp"), "wheel", {"model": model})


def test_llama_server_gets_the_context_of_all_its_slots() -> None:
    options = {"model": "m.gguf", "max_num_seqs": 8, "prefix_cache": False}
    argv = command(load_launcher("llamacpp"), "process", options)
    assert argv[:5] == ["llama-server", "--model", "m.gguf", "--alias", "m"]
    assert argv[-5:] == ["--parallel", "8", "--ctx-size", "16384", "--no-cache-prompt"]


def test_the_engines_stand_in_the_checkout_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENGINEBENCH_ENGINES", raising=False)
    assert engines_folder() == shipped.folder("launchers").parent / ".venvs"
    monkeypatch.setenv("ENGINEBENCH_ENGINES", "~/engines")
    assert engines_folder() == Path.home() / "engines"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENGINEBENCH_ENGINES", "here")
    assert engines_folder() == tmp_path / "here"


def test_a_key_reaches_the_engine_by_its_environment_or_its_command_and_only_at_the_start() -> None:
    around = Surroundings(has_key=True)
    for engine, variable in (("vllm", "VLLM_API_KEY"), ("tgi", "API_KEY"), ("llamacpp", "LLAMA_API_KEY")):
        made = invocation(load_launcher(engine), "process", {"model": "m"}, around)
        assert made.env[variable] == "{api_key}"
        assert completed(made, "sk-1").env[variable] == "sk-1"
        assert variable not in invocation(load_launcher(engine), "process", {"model": "m"}).env
    made = invocation(load_launcher("sglang"), "process", {"model": "m"}, around)
    assert "--api-key={api_key}" in made.argv
    assert "--api-key=sk-1" in completed(made, "sk-1").argv


def test_a_container_gets_its_key_by_name_and_its_folders_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    around = Surroundings(gpus=[0, 1], env={"OMP_NUM_THREADS": "4"}, has_key=True)
    made = completed(invocation(load_launcher("vllm"), "container", {"model": "a/b"}, around), "sk-1")
    assert made.env == {"VLLM_API_KEY": "sk-1"}
    assert "sk-1" not in "".join(made.argv)
    assert made.container == "enginebench-vllm-{port}"
    for word in (
        "127.0.0.1:{port}:8000",
        '--gpus="device=0,1"',
        f"--volume={tmp_path}:/root/.cache/huggingface",
        "--env=VLLM_API_KEY",
        "--env=OMP_NUM_THREADS=4",
    ):
        assert word in made.argv


def test_a_model_of_this_machine_is_mounted_into_its_container(tmp_path: Path) -> None:
    options = {"model": f"{tmp_path}/llama", "host": "::1", "port": 81, "image": "mine:1"}
    made = invocation(load_launcher("vllm"), "container", options, Surroundings(gpus=[]))
    assert made.container == "enginebench-vllm-81"
    assert f"--volume={tmp_path}/llama:/models/llama:ro" in made.argv
    assert "[::1]:81:8000" in made.argv
    assert made.argv[made.argv.index("mine:1") :][:5] == (
        "mine:1", "serve", "/models/llama", "--served-model-name", "llama",
    )  # fmt: skip
    assert not any(word.startswith("--gpus") for word in made.argv)


def test_a_process_is_pinned_to_its_gpus_in_the_order_of_the_bus() -> None:
    made = invocation(launcher_of(command=("e",)), "process", {"model": "m"}, Surroundings(gpus=["GPU-1", 2]))
    assert made.env == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "GPU-1,2"}
    none = invocation(launcher_of(command=("e",)), "process", {"model": "m"}, Surroundings(gpus=[]))
    assert none.env["CUDA_VISIBLE_DEVICES"] == ""


def test_a_switch_that_can_only_be_turned_off() -> None:
    form = {"command": ("e",), "off_options": {"cache": ("--no-cache",)}}
    assert words({}, **form) == words({"cache": True}, **form) == ["e"]
    assert words({"cache": False}, **form) == ["e", "--no-cache"]
    with pytest.raises(UserError, match="is a switch"):
        words({"cache": 3}, **form)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("serve --port {port}", "needs the option command, a list of words"),
        ([], "needs the option command, a list of words"),
        (["serve"], r"the command must name \{port\}"),
    ],
)
def test_a_custom_command_that_cannot_be_used_is_refused(given: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        command(load_launcher("custom"), "process", {"model": "m", "command": given})


def test_a_custom_command_is_taken_word_by_word() -> None:
    given = ["serve", "{model}", "--name={served_name}", "--at={host}:{port}", 3, "--key={api_key}"]
    made = invocation(load_launcher("custom"), "process", {"model": "/m/x.gguf", "command": given})
    assert made.argv == ("serve", "/m/x.gguf", "--name=x", "--at=127.0.0.1:{port}", "3")
    fixed = {"model": "m", "command": ["serve"], "port": 81}
    assert command(load_launcher("custom"), "process", fixed) == ["serve"]


@pytest.mark.parametrize("engine", [launcher.id for launcher in launchers()])
def test_the_engines_page_has_a_section_with_every_option(engine: str) -> None:
    page = (shipped.folder("launchers").parent / "docs" / "engines.md").read_text()
    section = next(part for part in page.split("\n## ") if f"\n\n`launch: {engine}`" in part)
    launcher = load_launcher(engine)
    for form in launcher.forms.values() if launcher.status in ("maintained", "maintenance") else ():
        own = {*form.options, *form.off_options, *form.defaults, *named_options(form)} - {"served_name"}
        assert {option for option in own if f"`{option}`" not in section} == set()
