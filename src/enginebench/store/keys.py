"""API keys by reference: looked up when they are needed, stored nowhere."""

from __future__ import annotations

import os
from pathlib import Path


def look_up(variable: str | None, file: str | None) -> str | None:
    """The key in an environment variable, or else in a file; None when neither is named or the
    variable is not set. Raises OSError or UnicodeDecodeError for a file that cannot be read."""
    if variable is not None:
        return os.environ.get(variable, "").strip() or None
    return Path(file).expanduser().read_text().strip() if file is not None else None
