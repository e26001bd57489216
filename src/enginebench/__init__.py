"""enginebench: the test bench for LLM serving engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["Run", "__version__", "load"]

if TYPE_CHECKING:
    from enginebench.model.run import Run
    from enginebench.store.loading import load


def __getattr__(name: str) -> object:
    # Lazy, so that `enginebench --help` does not pay for pandas and pyarrow.
    if name == "load":
        from enginebench.store.loading import load

        return load
    if name == "Run":
        from enginebench.model.run import Run

        return Run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
