from __future__ import annotations

import yaml
from tests.fakes.summaries import run_meta

from enginebench.report import about
from enginebench.report.about import (
    DEFINITIONS,
    environment_rows,
    reproduce,
    run_rows,
    scenario_yaml,
    shell_line,
    target_rows,
)
from enginebench.report.tables import COLUMNS


def test_a_command_can_be_pasted_into_a_shell() -> None:
    assert reproduce(run_meta()) == "enginebench run 'scenarios/two engines.yaml' --set load.0.duration=60s"
    assert reproduce({"command": "enginebench run x.yaml"}) == "enginebench run x.yaml"
    assert reproduce({}) is None
    assert shell_line(["a", "b\x1b[0m c"]) == "a 'b c'"


def test_hosts_are_told_apart_only_where_there_are_several() -> None:
    host = run_meta()["hosts"][0]

    one, two = environment_rows({"hosts": [host]}), environment_rows({"hosts": [host, {"hostname": "b"}]})

    assert ("CPU", "AMD EPYC 9554 64-Core Processor") in one
    assert ("packages", "enginebench 0.1.0, httptools 0.6.4, numpy 2.1.1") in one
    assert ("bench-01: CPU", "AMD EPYC 9554 64-Core Processor") in two
    assert ("b: host", "b") in two
    assert environment_rows({}) == []


def test_how_long_an_engine_took_to_start_is_a_result() -> None:
    target = {"starts": [{"ready_s": 61.25, "first_completion_s": None}, {"ready_s": 0.5}]}

    assert target_rows(target) == [
        ("start", "ready after 61.2 s, first completion: n/a"),
        ("start", "ready after 0.500 s, first completion: n/a"),
    ]


def test_the_scenario_can_be_read_back() -> None:
    text = scenario_yaml(run_meta())

    assert text is not None
    assert yaml.safe_load(text) == run_meta()["scenario"]
    assert scenario_yaml({}) is None
    assert "\x1b" not in (scenario_yaml({"scenario": {"name": "\x1b[31m\u202e"}}) or "")


def test_run_rows_leave_out_what_is_not_known() -> None:
    assert run_rows({"created_utc": "2026-03-01T09:30:00Z", "finished_utc": None}) == [
        ("started", "2026-03-01T09:30:00Z")
    ]


def test_every_column_is_defined() -> None:
    defined = {term for term, _ in DEFINITIONS}

    assert {column.group for column in COLUMNS if column.group} <= defined


def test_only_facts_that_differ_are_set_side_by_side() -> None:
    targets = [
        {"name": "a", "engine": "vLLM", "model": "m", "request_fields": {"stream": True, "temperature": 0.0}},
        {"name": "b", "engine": "TGI", "model": "m", "request_fields": {"stream": True}},
    ]

    assert about.differences({"targets": targets}) == [
        ("engine", ["vLLM", "TGI"]),
        ("sent: temperature", ["0.0", "n/a"]),
    ]
    assert about.differences({"targets": targets[:1]}) == []


def test_a_gpu_is_one_row_of_what_is_known_of_it() -> None:
    gpu = {
        "index": 0,
        "name": "NVIDIA H100",
        "memory_bytes": 85.5e9,
        "uuid": "GPU-1",
        "ecc": True,
        "mig": None,
    }

    rows = about.environment_rows({"hosts": [{"hostname": "h", "gpus": [gpu], "driver": "580.1"}]})

    assert rows == [("host", "h"), ("driver", "580.1"), ("GPU", "0: NVIDIA H100, 85.5 GB, GPU-1, ECC on")]
