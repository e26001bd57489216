"""An engine's start as text for a shell: the exact command, or a script with the whole life-cycle.

Secrets stand there by reference, `"$HF_TOKEN"`, never by value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import jinja2

from enginebench.catalog import shipped
from enginebench.catalog.invocation import Invocation, invocation, surroundings
from enginebench.catalog.launchers import load_launcher
from enginebench.model.launcher import Form, Launcher
from enginebench.model.request import ENDPOINT_PATHS, Request, Sampling
from enginebench.model.scenario import Target
from enginebench.units import seconds
from enginebench.wire.encode import encode_body

DEFAULT_PORT = 8000

_OPEN = re.compile(r"(\{(?:port|api_key|home|hf_home)\})")
_REQUEST = Request(seq=0, prompt="Say hello.", prompt_sha256="", asked_prompt_tokens=3, asked_output_tokens=4)


@dataclass(frozen=True, slots=True)
class Launch:
    """One engine, ready to be written down."""

    launcher: Launcher
    target: Target
    made: Invocation
    made_by: str
    """The command line that asks for this text."""
    port: int = DEFAULT_PORT
    """Of a script whose words leave it open."""

    @property
    def form(self) -> Form:
        return self.launcher.forms[self.target.via]


def written_down(target: Target, made_by: str, *, open_port: bool) -> Launch:
    """The launch of a target. With `open_port` the port stays a variable, whose default it is."""
    launcher = load_launcher(str(target.launch))
    asked = {"model": target.model, **target.options}
    port = int(asked.get("port") or 0)
    if open_port:
        asked.pop("port", None)
    made = invocation(launcher, target.via, asked, surroundings(target))
    return Launch(launcher, target, made, made_by, port)


def shell_command(launch: Launch) -> str:
    """What is run, to be pasted into a shell: variables, then the command, a flag to a line."""
    values = _values(launch.target)
    assignments = [_assignment(name, text, values) for name, text in launch.made.env.items()]
    return " \\\n".join([*assignments, *_flag_lines(launch.made.argv, values)])


def launch_script(launch: Launch) -> str:
    """A bash script that starts the engine, waits until it has completed a request, and stops it for
    certain. shellcheck finds nothing in it."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string((shipped.folder("data") / "launch.sh.j2").read_text(encoding="utf-8"))
    return template.render(**_facts(launch), **_questions(launch))


def _facts(launch: Launch) -> dict[str, object]:
    launcher, target, made = launch.launcher, launch.target, launch.made
    values = _values(target)
    host = "127.0.0.1" if made.host == "0.0.0.0" else made.host
    authority = f"[{host}]" if ":" in host else host
    return {
        "title": launcher.title,
        "model": _one_line(str(target.model)),
        "made_by": _one_line(launch.made_by),
        "status": launcher.status,
        "port": launch.port or DEFAULT_PORT,
        "log": f"{launcher.id}.log",
        "start_timeout_s": round(seconds(target.start_timeout_ns or launcher.start_timeout_ns)),
        "secrets": [target.api_key_env] if target.api_key_env else [],
        "tokens": launch.form.image.pass_env if launch.form.image else ("HF_TOKEN",),
        "exports": [_assignment(name, text, values) for name, text in made.env.items()],
        "command_lines": _flag_lines(made.argv, values),
        "container": None if made.container is None else _word(made.container, values),
        "connect_host": host,
        "root": _word(f"http://{authority}:{{port}}", values),
        "base_path": launcher.base_path,
    }


def _questions(launch: Launch) -> dict[str, object]:
    """What the script asks the engine before it counts as ready."""
    launcher, target = launch.launcher, launch.target
    readiness = target.readiness or launcher.readiness
    body = None
    if readiness.completion:
        text = encode_body(_REQUEST, launch.made.served_name, target.endpoint, launcher.dialect, Sampling())
        body = shlex.quote(text.decode())
    key = _values(target)["{api_key}"]
    return {
        "health": readiness.health,
        "models": readiness.models,
        "listed_name": shlex.quote(f'"{launch.made.served_name}"'),
        "body": body,
        "completion_path": ENDPOINT_PATHS[target.endpoint],
        "authorised": key is not None,
        "key": key,
    }


def _values(target: Target) -> dict[str, str | None]:
    """What stands in a shell for the words that are left open."""
    key = None
    if target.api_key_env is not None:
        key = f'"${target.api_key_env}"'
    elif target.api_key_file is not None:
        key = f'"$(cat {shlex.quote(target.api_key_file)})"'
    return {
        "{port}": '"$PORT"',
        "{api_key}": key,
        "{home}": '"$HOME"',
        "{hf_home}": '"${HF_HOME:-$HOME/.cache/huggingface}"',
    }


def _assignment(name: str, text: str, values: Mapping[str, str | None]) -> str:
    return f"{name}={_word(text, values)}"


def _word(word: str, values: Mapping[str, str | None]) -> str:
    """One word as a shell reads it back."""
    parts = [part for part in _OPEN.split(word) if part]
    return "".join(values.get(part) or shlex.quote(part) for part in parts) or "''"


def _flag_lines(words: Sequence[str], values: Mapping[str, str | None]) -> list[str]:
    """The words on lines that each begin with a flag, but for the first."""
    lines = [" ".join(_word(word, values) for word in line) for line in _grouped(words)]
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def _grouped(words: Sequence[str]) -> Iterator[list[str]]:
    line: list[str] = []
    for word in words:
        is_whole = line and line[0].startswith("-") and "=" in line[0]
        if line and (is_whole or word.startswith("-")):
            yield line
            line = []
        line.append(word)
    yield line


def _one_line(text: str) -> str:
    """Fit for a comment, which must not end early."""
    return " ".join(text.split())
