"""The child of `enginebench.mock.running`: its configuration is the first line of its standard
input, and it lives until that input ends, so it cannot outlive whoever started it."""

from __future__ import annotations

import sys

import msgspec

from enginebench.mock.config import MockConfig
from enginebench.mock.server import run

if __name__ == "__main__":
    run(msgspec.json.decode(sys.stdin.buffer.readline(), type=MockConfig), lifeline_fd=sys.stdin.fileno())
