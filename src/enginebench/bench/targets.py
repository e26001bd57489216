"""A target made ready for load: an engine that we started, or an endpoint that we attached to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enginebench.catalog.dialects import load_dialect
from enginebench.catalog.invocation import completed, invocation, surroundings
from enginebench.catalog.launchers import load_launcher
from enginebench.engines.gpus import pinned
from enginebench.engines.process import Engine, EngineSpec, exited, running
from enginebench.engines.readiness import check_endpoint
from enginebench.engines.version import engine_version
from enginebench.errors import UserError
from enginebench.model.client import Endpoint
from enginebench.model.launcher import Image, Launcher
from enginebench.model.request import ENDPOINT_PATHS, Dialect
from enginebench.model.scenario import Scenario, Target
from enginebench.store.keys import look_up
from enginebench.telemetry.as_running import flags_as_running, image_digest
from enginebench.telemetry.host import shares_cores
from enginebench.telemetry.prometheus import EngineMetrics, read_once

COUNTERS = ("prompt_tokens", "generation_tokens")


@dataclass(frozen=True, slots=True)
class OpenTarget:
    target: Target
    endpoint: Endpoint
    model: str
    """The name under which requests ask for it."""
    dialect: Dialect
    facts: dict[str, Any]
    """Of this start, for run.json: ready_s, argv and so on."""
    secrets: tuple[str, ...] = field(repr=False)
    _engine: Engine | None = None
    metrics: EngineMetrics | None = None
    """None where it tells none, or we do not know which."""

    def counters(self) -> dict[str, float]:
        """The engine's own token counters, as they stand; empty where it tells none."""
        values = read_once(self.metrics).values if self.metrics else {}
        return {name: values[name] for name in COUNTERS if name in values}

    def problem(self) -> str | None:
        """Why it cannot be loaded any more; None while it can."""
        if self._engine is None:
            return None
        error = exited(self._engine)
        return str(error) if error else None


def api_key(target: Target) -> str | None:
    """The key that `api_key_env` or `api_key_file` refers to. Raises UserError when it is not there,
    or when it is nothing that a header can carry; it is never quoted."""
    if target.api_key_env is None and target.api_key_file is None:
        return None
    try:
        key = look_up(target.api_key_env, target.api_key_file)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"target {target.name}: cannot read api_key_file {target.api_key_file}: {error}"
        ) from error
    if key is None:
        raise UserError(
            f"target {target.name}: the environment variable {target.api_key_env} is not set; "
            f"export it, or name another one with api_key_env"
        )
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(
            f"target {target.name}: {target.api_key_env or target.api_key_file} holds no API key: "
            "a key is one word of ASCII characters, without blanks or line breaks"
        )
    return key


def check(target: Target) -> None:
    """What can be known to be missing before anything is started: its key, the engine's environment,
    the model's file. Raises UserError."""
    api_key(target)
    if target.launch is not None:
        asked = {"model": target.model, **target.options}
        invocation(load_launcher(target.launch), target.via, asked, surroundings(target))


def headers_of(target: Target) -> dict[str, str]:
    key = api_key(target)
    return {"Authorization": f"Bearer {key}"} if key else {}


def target_facts(target: Target) -> dict[str, Any]:
    """What run.json says of a target before it has been opened."""
    launcher = load_launcher(target.launch) if target.launch else None
    return {
        "name": target.name,
        "engine": launcher.title if launcher else target.url,
        "version": None,
        "model": target.model,
        "hardware": target.hardware,
        "endpoint": target.endpoint,
        "base_url": target.url,
        "argv": None,
        "flags": None,
        "image_digest": None,
        "shares_cores": None,
        "problem": None,
        "starts": [],
    }


@contextmanager
def opened(target: Target, scenario: Scenario, log_path: Path) -> Iterator[OpenTarget]:
    """The target, ready; stopped again when it was we who started it. Raises TargetError."""
    headers = headers_of(target)
    secrets = tuple(value.removeprefix("Bearer ") for value in headers.values())
    if target.url is not None:
        check_endpoint(target.url, target.model, headers, target.api_key_env or target.api_key_file)
        endpoint = _endpoint(target.url, target, scenario, headers)
        chosen = load_dialect(target.dialect or "openai")
        yield OpenTarget(target, endpoint, target.model or "", chosen, {"base_url": target.url}, secrets)
        return
    assert target.launch is not None
    launcher = load_launcher(target.launch)
    spec, version_argv = _engine_spec(launcher, target, log_path, headers)
    version = engine_version(version_argv, spec.env)
    with running(spec) as engine:
        facts = {
            "base_url": engine.base_url,
            "argv": list(engine.argv),
            "version": version,
            "started_utc": engine.started_utc,
            "ready_s": engine.ready_s,
            "first_token_s": engine.first_token_s,
            "first_completion_s": engine.first_completion_s,
        }
        root = engine.base_url.removesuffix(launcher.base_path)
        facts |= _as_running(engine, launcher.forms[target.via].image, target, (root, headers, secrets))
        endpoint = _endpoint(engine.base_url, target, scenario, headers)
        metrics = EngineMetrics(f"{root}/metrics", launcher.metrics, headers) if launcher.metrics else None
        yield OpenTarget(target, endpoint, spec.model, spec.dialect, facts, secrets, engine, metrics)


def _as_running(
    engine: Engine, image: Image | None, target: Target, asked: tuple[str, dict[str, str], tuple[str, ...]]
) -> dict[str, Any]:
    """What only the running engine, or its image, can tell; None where it does not."""
    name = str(target.options.get("image", image.name)) if image else None
    return {
        "flags": flags_as_running(*asked),
        "image_digest": image_digest(name) if name else None,
        # The process that we started for a container is Docker's client: it says nothing of cores.
        "shares_cores": None if image else shares_cores(engine.pid),
    }


def _engine_spec(
    launcher: Launcher, target: Target, log_path: Path, headers: dict[str, str]
) -> tuple[EngineSpec, tuple[str, ...]]:
    """How to start the target's engine, and the command that tells its version."""
    asked = {"model": target.model, **target.options}
    around = replace(surroundings(target), gpus=_gpus(target))
    words = completed(invocation(launcher, target.via, asked, around), api_key(target))
    spec = EngineSpec(
        name=target.name,
        argv=words.argv,
        log_path=log_path,
        model=words.served_name,
        host=words.host,
        port=words.port,
        env=words.env,
        base_path=launcher.base_path,
        endpoint=target.endpoint,
        dialect=load_dialect(target.dialect) if target.dialect else launcher.dialect,
        readiness=target.readiness or launcher.readiness,
        headers=headers,
        start_timeout_ns=target.start_timeout_ns or launcher.start_timeout_ns,
        container=words.container,
    )
    return spec, words.version_argv


def _gpus(target: Target) -> Sequence[int | str] | None:
    """Those of the target by UUID. Raises TargetError when one of them is in use."""
    fraction = target.options.get("gpu_memory_fraction")
    return pinned(target.name, target.gpus, fraction if isinstance(fraction, float) else None)


def _endpoint(base_url: str, target: Target, scenario: Scenario, headers: dict[str, str]) -> Endpoint:
    return Endpoint(base_url.rstrip("/") + ENDPOINT_PATHS[target.endpoint], headers, scenario.timeouts)
