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


@pytest.fixture
def llamacpp(tmp_path: Path) -> LlamaSpec:
    """The spec of a llama.cpp server with the tiny model."""
    if not (engines_folder() / "llamacpp" / ".installed").is_file():
        pytest.fail(f"llama.cpp is not installed in {engines_folder()}: run scripts/install-engines llamacpp")
    launcher = load_launcher("llamacpp")
    options = {
        "model": "{engines}/models/tiny-llama.gguf",
        "max_num_seqs": 4,
        "max_model_len": 512,
        "threads": 1,
    }

    def spec(endpoint: EndpointKind = "chat", **more: object) -> EngineSpec:
        made = invocation(launcher, "wheel", {**options, **more})
        return EngineSpec(
            name="llamacpp",
            argv=made.argv,
            log_path=tmp_path / "llamacpp.txt",
            model=made.served_name,
            env=made.env,
            endpoint=endpoint,
            dialect=launcher.dialect,
            readiness=launcher.readiness,
            start_timeout_ns=launcher.start_timeout_ns,
        )

    return spec
