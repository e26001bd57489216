"""SGLang's package needs a GPU to be run, so its flags are held against a `--help` that it printed."""

from __future__ import annotations

import re
from pathlib import Path

from enginebench.catalog.launchers import load_launcher

HELP = Path(__file__).parents[1] / "captures" / "sglang" / "help.txt"


def test_every_flag_that_the_launcher_can_emit_stands_in_sglangs_help() -> None:
    known = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", HELP.read_text()))
    for form in load_launcher("sglang").forms.values():
        options = [*form.options.values(), *form.off_options.values()]
        words = [*form.command, *(word for option in options for word in option)]
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert len(flags) > 10
        assert flags <= known
