"""NVIDIA GPUs through NVML: facts for run.json, readings while a load runs. Reads only.

Needs the extra `gpu` (nvidia-ml-py) and a driver; without either there is nothing to tell. What a
GPU or its driver cannot say is left out, or None: never 0. No setting of a GPU is ever changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:
    import pynvml
except ImportError:  # the extra is not installed
    pynvml = None

Readings = dict[str, dict[str, float]]
"""UUID -> our name -> value."""


@contextmanager
def gpu_readings() -> Iterator[Callable[[], Readings] | None]:
    """A function that reads all GPUs; None where there is no NVML."""
    with _nvml() as found:
        if not found:
            yield None
            return
        devices = [(uuid, handle) for handle in _handles() if (uuid := _uuid(handle)) is not None]
        yield lambda: {uuid: _readings(handle) for uuid, handle in devices}


def gpu_facts() -> dict[str, Any]:
    """`driver`, `cuda` and `gpus` of one of run.json's hosts; all None where there is no NVML."""
    with _nvml() as found:
        if not found:
            return {"driver": None, "cuda": None, "gpus": None}
        cuda = _ask("nvmlSystemGetCudaDriverVersion_v2")
        return {
            "driver": _ask("nvmlSystemGetDriverVersion"),
            # 12080 is 12.8
            "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
            "gpus": [_facts(index, handle) for index, handle in enumerate(_handles())],
        }


@contextmanager
def _nvml() -> Iterator[bool]:
    """Whether NVML is there; it is shut down at the end, so that no other start of ours keeps it."""
    if pynvml is None:
        yield False
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        _ask("nvmlShutdown")


def _handles() -> list[Any]:
    found = (_ask("nvmlDeviceGetHandleByIndex", index) for index in range(_ask("nvmlDeviceGetCount") or 0))
    return [handle for handle in found if handle is not None]


def _uuid(handle: Any) -> str | None:
    uuid: str | None = _ask("nvmlDeviceGetUUID", handle)
    return uuid


def _facts(index: int, handle: Any) -> dict[str, Any]:
    memory = _ask("nvmlDeviceGetMemoryInfo", handle)
    return {
        "index": index,
        "uuid": _uuid(handle),
        "name": _ask("nvmlDeviceGetName", handle),
        "memory_bytes": memory.total if memory else None,
        "mig": _first_as_bool(_ask("nvmlDeviceGetMigMode", handle)),
        "ecc": _first_as_bool(_ask("nvmlDeviceGetEccMode", handle)),
        "power_limit_w": _scaled(_ask("nvmlDeviceGetEnforcedPowerLimit", handle), 1e-3),
    }


def _readings(handle: Any) -> dict[str, float]:
    rates = _ask("nvmlDeviceGetUtilizationRates", handle)
    memory = _ask("nvmlDeviceGetMemoryInfo", handle)
    reasons = _ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:  # the name it had before driver 535
        reasons = _ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    found = {
        "utilisation": _scaled(rates.gpu, 1e-2) if rates else None,
        "memory_used_bytes": float(memory.used) if memory else None,
        "power_w": _scaled(_ask("nvmlDeviceGetPowerUsage", handle), 1e-3),
        "energy_j": _scaled(_ask("nvmlDeviceGetTotalEnergyConsumption", handle), 1e-3),
        "sm_clock_mhz": _scaled(_ask("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM)),
        "memory_clock_mhz": _scaled(_ask("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_MEM)),
        "temperature_c": _scaled(_ask("nvmlDeviceGetTemperature", handle, pynvml.NVML_TEMPERATURE_GPU)),
        "throttle_reasons": _scaled(reasons),
    }
    return {name: value for name, value in found.items() if value is not None}


def _ask(function: str, *arguments: Any) -> Any:
    """None where this GPU, this driver or this binding cannot tell."""
    call = getattr(pynvml, function, None)
    if call is None:
        return None
    try:
        answer = call(*arguments)
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def _scaled(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else value * factor


def _first_as_bool(modes: Any) -> bool | None:
    """NVML answers the present mode and the one after the next reboot or reset."""
    return None if modes is None else bool(modes[0])
