"""GPUs through the real binding, on a small NVML of our own: compiled here, found by the loader."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from enginebench.telemetry import nvml

SOURCE = Path(__file__).with_name("fake_nvml.c")
ASK = """
import json
from enginebench.telemetry.nvml import gpu_facts, gpu_readings
with gpu_readings() as read:
    print(json.dumps([gpu_facts(), read() if read else None]))
"""


def told(library: Path | None) -> list[Any]:
    """What a process of its own learns: the binding keeps the library that it has loaded once."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(library or "")}
    done = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def compiled(folder: Path, *flags: str) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "these tests need a C compiler: install gcc"
    words = [compiler, "-shared", "-fPIC", *flags, "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)]
    subprocess.run(words, check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return told(compiled(tmp_path_factory.mktemp("nvml")))


def test_facts_are_what_the_library_tells_in_our_units(gpus):
    facts, _ = gpus
    assert (facts["driver"], facts["cuda"]) == ("570.86.15", "12.8")
    assert facts["gpus"][0] == {
        "index": 0,
        "uuid": "GPU-new",
        "name": "NVIDIA H100 80GB HBM3",
        "memory_bytes": 85520809984,
        "mig": False,
        "ecc": True,
        "power_limit_w": 700.0,
    }


def test_a_fact_that_a_gpu_cannot_tell_is_null(gpus):
    facts, _ = gpus
    assert {name for name, value in facts["gpus"][1].items() if value is None} == {
        "mig",
        "ecc",
        "power_limit_w",
    }


def test_readings_come_by_uuid_in_our_units_also_under_the_old_name_of_a_function(gpus):
    _, readings = gpus
    assert readings["GPU-new"] == pytest.approx(
        {
            "utilisation": 0.37,
            "memory_used_bytes": 1073741824,
            "power_w": 312.5,
            "energy_j": 5000000.5,
            "sm_clock_mhz": 1980,
            "memory_clock_mhz": 2619,
            "temperature_c": 61,
            "throttle_reasons": 4,
        }
    )


def test_a_reading_that_a_gpu_cannot_give_is_left_out_and_a_real_zero_is_kept(gpus):
    _, readings = gpus
    assert readings["GPU-old"] == {"memory_used_bytes": 1073741824, "temperature_c": 0}


def test_a_driver_without_devices_has_none_rather_than_unknown_ones(tmp_path):
    facts, readings = told(compiled(tmp_path, "-DWITHOUT_GPUS"))
    assert (facts["driver"], facts["gpus"], readings) == ("570.86.15", [], {})


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this host has a real NVML")
def test_without_a_library_nothing_is_known():
    assert told(None) == [{"driver": None, "cuda": None, "gpus": None}, None]


def test_without_the_binding_nothing_is_known(monkeypatch):
    monkeypatch.setattr(nvml, "pynvml", None)
    assert nvml.gpu_facts() == {"driver": None, "cuda": None, "gpus": None}
    with nvml.gpu_readings() as read:
        assert read is None


def test_no_function_that_changes_a_gpu_is_named():
    source = Path(str(nvml.__file__)).read_text()
    called = re.findall(r"nvml[A-Z]\w+", source)
    assert called
    assert [name for name in called if re.search(r"Set|Reset|Clear|Enable|Create|Destroy", name)] == []
