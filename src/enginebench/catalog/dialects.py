"""The shipped dialects: which request fields a server accepts (data/dialects.yaml)."""

from __future__ import annotations

from functools import cache

from pydantic import TypeAdapter

from enginebench.catalog import shipped
from enginebench.catalog.validation import nearest, validated
from enginebench.catalog.yaml_source import read_yaml
from enginebench.errors import ConfigError
from enginebench.model.request import Dialect


def load_dialect(name: str) -> Dialect:
    """Raises ConfigError with the nearest name when there is no such dialect."""
    known = dialects()
    if name not in known:
        raise ConfigError(f"no dialect {name!r}" + nearest(name, [*known]))
    return known[name]


@cache
def dialects() -> dict[str, Dialect]:
    """All shipped dialects by name."""
    source = read_yaml(shipped.folder("data") / "dialects.yaml")
    # A dialect's name is its key.
    for name, fields in source.data.items():
        fields["name"] = name
    return validated(TypeAdapter(dict[str, Dialect]), source)
