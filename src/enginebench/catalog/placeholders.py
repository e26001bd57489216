"""Placeholders in the words of a launcher: {model}, {port}, {value}, {a*b}."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\*[a-z_]+)*|no-)\}")
"""Narrow on purpose, so that JSON in a word ('{"a": 1}') stays what it is."""

BUILT_IN: Mapping[str, str] = {
    "model": "what the target names: an id, a folder or a file",
    "served_name": "the name under which requests ask for the model",
    "host": "the address it listens on",
    "port": "the port it listens on",
    "python": "the Python that runs enginebench",
    "api_key": "the key that requests carry; the word is left out where there is none",
    "engine_python": "the Python of the engine's own environment (scripts/install-engines)",
    "engine_bin": "the folder of that environment's programs",
    "engines": "the folder of those environments",
    "package": "the folder of the enginebench package",
}

HOST_FOLDERS: Mapping[str, str] = {
    "home": "the user's home",
    "hf_home": "the cache of Hugging Face: $HF_HOME, or ~/.cache/huggingface",
}
"""What the mounts of a container may name."""


def named(word: str) -> list[str]:
    """Names of the placeholders in a word; both factors of a product."""
    return [name for found in _PLACEHOLDER.findall(word) for name in found.split("*")]


def fill(word: str, values: Mapping[str, object]) -> str:
    """The word with each placeholder that `values` knows replaced; the others stay.

    `{a*b}` is the product of two numbers: llama.cpp wants the context of all slots together.
    """

    def replace(match: re.Match[str]) -> str:
        names = match[1].split("*")
        if any(name not in values for name in names):
            return match[0]
        if len(names) == 1:
            return str(values[names[0]])
        return str(prod(int(str(values[name])) for name in names))

    return _PLACEHOLDER.sub(replace, word)
