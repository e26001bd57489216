"""Launches whose text is held by golden files: every form of every shipped launcher, every option set."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from enginebench.catalog.invocation import known_options
from enginebench.catalog.launch_script import Launch, written_down
from enginebench.catalog.launchers import launchers, load_launcher
from enginebench.catalog.scenario import LaunchOptions, launch_scenario

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
VALUES = {
    "tensor_parallel": "2",
    "pipeline_parallel": "1",
    "dtype": "bfloat16",
    "quantization": "fp8",
    "kv_cache_dtype": "fp8_e5m2",
    "max_model_len": "8192",
    "max_num_seqs": "256",
    "max_batched_tokens": "4096",
    "gpu_memory_fraction": "0.9",
    "prefix_cache": "false",
    "extra_args": "[--more, two words]",
}
MODELS = {"llamacpp": "/models/llama-3.1-8b-q4.gguf", "mock": "mock-model", "ollama": "llama3.1:8b"}
OWN_COMMAND = '[my-server, --model, "{model}", "--name={served_name}", --port, "{port}"]'

COMMITTED = {
    "vllm": LaunchOptions("vllm", LLAMA, port=8000, settings=("max_model_len=8192",)),
    "tgi": LaunchOptions(
        "tgi", LLAMA, via="container", gpus="0", port=8080, settings=("max_model_len=8192",)
    ),
}
"""The scripts that stand in launchers/, ready to be taken."""


def every_form() -> Iterator[tuple[str, str]]:
    for launcher in launchers():
        for form in launcher.forms:
            yield launcher.id, form


def full_launch(engine: str, form: str) -> Launch:
    """With every neutral option that the form has, two GPUs and an API key."""
    known = known_options(load_launcher(engine).forms[form])
    settings = [f"{name}={value}" for name, value in VALUES.items() if name in known]
    if engine == "lmdeploy":
        settings = [setting.replace("fp8_e5m2", "8") for setting in settings]
    if engine == "custom":
        settings = [f"command={OWN_COMMAND}"]
    gpus = None if engine in ("mock", "custom") else "0,1"
    options = LaunchOptions(engine, MODELS.get(engine, LLAMA), form, gpus, None, 8000, "API_KEY", settings)
    return launch_of(options)


def launch_of(options: LaunchOptions, *, open_port: bool = False) -> Launch:
    (target,) = launch_scenario(options).targets
    return written_down(target, shlex.join(command_line(options)), open_port=open_port)


def command_line(options: LaunchOptions) -> list[str]:
    words = ["enginebench", "launch", options.engine, "--model", str(options.model)]
    for flag, value in (("--via", options.via), ("--gpus", options.gpus)):
        words += [flag, value] if value else []
    for setting in options.settings:
        words += ["--set", setting]
    return [*words, "--port", str(options.port), "--script"]
