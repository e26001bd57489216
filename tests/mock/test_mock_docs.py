from __future__ import annotations

import re
from pathlib import Path

from enginebench.batching.scheduler import SchedulerConfig

PAGE = (Path(__file__).parents[2] / "docs" / "mock.md").read_text()


def test_the_python_example_runs_as_it_stands() -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/mock.md", "exec"), {})


def test_the_table_has_the_defaults() -> None:
    told = {
        name: float(value)
        for name, value in re.findall(r"^\| `--([\w-]+)` \| ([\d.]+) \|", PAGE, re.MULTILINE)
    }
    config = SchedulerConfig()
    step_time = config.step_time
    assert told == {
        "max-num-seqs": config.max_num_seqs,
        "max-num-batched-tokens": config.max_num_batched_tokens,
        "base-ms": step_time.base_ms,
        "per-seq-us": step_time.per_seq_us,
        "per-ktoken-us": step_time.per_ktoken_us,
        "prefill-us-per-token": step_time.prefill_us_per_token,
        "seed": 0,
    }
