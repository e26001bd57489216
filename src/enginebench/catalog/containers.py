"""The words of `docker run` around an engine's own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enginebench.model.launcher import Image

_MODELS = "/models"
"""Where a model of this machine stands inside the container."""
_PATH_STARTS = ("/", "./", "../", "~", "{engines}")

Engine = tuple[Sequence[str], Mapping[str, str], Sequence[int | str] | None]
"""What runs inside: words for the entry point, environment, devices."""


@dataclass(frozen=True, slots=True)
class Outside:
    """How the container is seen from the host; `{port}` may still stand in the texts."""

    name: str
    address: str
    """host:port"""
    model: str


def is_path(model: str) -> bool:
    """Whether a model is named by its place on this machine and not by an id."""
    return model.startswith(_PATH_STARTS) or model.endswith(".gguf")


def inside(image: Image, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the engine sees them in its container."""
    model = str(options["model"])
    own_model = f"{_MODELS}/{Path(model).name}" if is_path(model) else model
    return {**options, "host": "0.0.0.0", "port": image.port, "model": own_model}


def docker_run(
    image: Image, outside: Outside, options: Mapping[str, Any], engine: Engine
) -> tuple[list[str], dict[str, str]]:
    """argv, and what its own environment must hold. A value that is a secret is passed by the
    variable's name alone, so that it stands in no command line."""
    words, env, gpus = engine
    secret = {name: value for name, value in env.items() if "{api_key}" in value}
    argv = ["docker", "run", "--rm", "--name", outside.name, "--publish", f"{outside.address}:{image.port}"]
    argv += _gpu_words(gpus)
    argv += image.flags
    argv += [f"--volume={mount}" for mount in _mounts(image, outside.model)]
    argv += [f"--env={name}" for name in (*image.pass_env, *secret)]
    argv += [f"--env={name}={value}" for name, value in env.items() if name not in secret]
    return [*argv, str(options.get("image", image.name)), *words], secret


def host_folders() -> dict[str, str]:
    """What {home} and {hf_home} mean on this machine."""
    home = str(Path.home())
    return {"home": home, "hf_home": os.environ.get("HF_HOME") or f"{home}/.cache/huggingface"}


def _gpu_words(gpus: Sequence[int | str] | None) -> list[str]:
    if gpus is None:
        return ["--gpus=all"]
    # Docker reads the value as CSV: the quotes keep a list of devices together.
    return [f'--gpus="device={",".join(map(str, gpus))}"'] if gpus else []


def _mounts(image: Image, model: str) -> list[str]:
    mounts = [f"{folder}:{where}" for folder, where in image.mounts.items()]
    if is_path(model):
        mounts.append(f"{Path(model).absolute()}:{_MODELS}/{Path(model).name}:ro")
    return mounts
