"""Real engines. A missing one is a failure: whoever asks for these tests wants them run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from enginebench.catalog.invocation import engines_folder, invocation
from enginebench.catalog.launchers import load_launcher
from enginebench.engines.process import EngineSpec
from enginebench.model.request import EndpointKind

LlamaSpec = Callable[..., EngineSpec]


_FORMS = {"llamacpp": "wheel", "vllm": "venv", "transformers": "venv"}
_MODELS = {"llamacpp": "tiny-llama.gguf", "vllm": "tiny-llama", "transformers": "tiny-llama"}


def spec_of(
    name: str, log_folder: Path, endpoint: EndpointKind = "completions", **options: object
) -> EngineSpec:
    """The spec of one of the three engines with the tiny model."""
    if not (engines_folder() / name / ".installed").is_file():
        pytest.fail(f"{name} is not installed in {engines_folder()}: run scripts/install-engines {name}")
    launcher = load_launcher(name)
    model = f"{{engines}}/models/{_MODELS[name]}"
    made = invocation(launcher, _FORMS[name], {"model": model, **options})
    return EngineSpec(
        name=name,
        argv=made.argv,
        log_path=log_folder / f"{name}.txt",
        model=made.served_name,
        # One thread, so that a second core is left for the tests; no look at the hub.
        env={**made.env, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        endpoint=endpoint,
        dialect=launcher.dialect,
        readiness=launcher.readiness,
        start_timeout_ns=launcher.start_timeout_ns,
    )


@pytest.fixture
def llamacpp(tmp_path: Path) -> LlamaSpec:
    """The spec of a llama.cpp server with the tiny model."""
    options = {"max_num_seqs": 4, "max_model_len": 512, "threads": 1}

    def spec(endpoint: EndpointKind = "chat", **more: object) -> EngineSpec:
        return spec_of("llamacpp", tmp_path, endpoint, **{**options, **more})

    return spec
