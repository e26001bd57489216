"""The GPUs that an engine is to have: known by UUID, and free. Reads only; no setting is ever changed.

NVML tells (extra `gpu`, a driver). Without it, as on a machine with other GPUs, what the target says is
passed on as it is, and nothing is checked; the same goes for the slices of a MIG GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from enginebench.clock import monotonic_ns
from enginebench.engines.ports import Holder
from enginebench.errors import TargetError
from enginebench.units import NS_PER_S

try:
    import pynvml
except ImportError:  # the extra is not installed
    pynvml = None

Gpus = Sequence[int | str]

DEFAULT_FRACTION = 0.9
"""Of its memory that must be free when a target does not say how much it takes: vLLM's own default."""
_LOOK_EVERY_S = 0.2
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as NVML tells it."""

    index: int
    """In the order of the PCI bus, as nvidia-smi counts."""
    uuid: str
    total_bytes: int
    free_bytes: int
    pids: tuple[int, ...] = ()
    """Of processes that compute on it, where the driver tells."""


def cards() -> list[Card] | None:
    """All GPUs; None where there is no NVML to ask."""
    if pynvml is None:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return [_card(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return None
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def pinned(
    name: str,
    gpus: Gpus | None,
    fraction: float | None = None,
    look: Callable[[], list[Card] | None] = cards,
    patience_s: float = 10.0,
) -> Gpus | None:
    """UUIDs in place of indexes, once `fraction` of each GPU's memory is free. Memory of an engine that
    has just ended can take a moment to be given back, so a busy GPU is looked at again for `patience_s`.

    None (as the engine likes) and an empty list (no GPU) come back as they are. Raises TargetError
    when there is no such GPU, and when its memory stays in use, naming by whom.
    """
    if not gpus:
        return gpus
    deadline_ns = monotonic_ns() + round(patience_s * NS_PER_S)
    while True:
        found = look()
        if found is None:
            return gpus
        chosen = [_chosen(name, gpu, found) for gpu in gpus]
        busy = [card for card in chosen if isinstance(card, Card) and not _is_free(card, fraction)]
        if not busy:
            return [card.uuid if isinstance(card, Card) else card for card in chosen]
        if monotonic_ns() >= deadline_ns:
            raise TargetError(_why_not(name, busy[0], fraction))
        time.sleep(_LOOK_EVERY_S)


def _card(index: int) -> Card:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Card(index, _text(pynvml.nvmlDeviceGetUUID(handle)), memory.total, memory.free, _pids(handle))


def _pids(handle: Any) -> tuple[int, ...]:
    try:
        return tuple(process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):  # a driver older than the binding
        return ()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _chosen(name: str, gpu: int | str, found: Sequence[Card]) -> Card | str:
    """The GPU of that index, UUID or beginning of a UUID; a MIG slice by its name alone."""
    wanted = int(gpu) if isinstance(gpu, str) and gpu.isdecimal() else gpu
    if isinstance(wanted, str) and wanted.startswith("MIG-"):
        return wanted
    fits = [
        card
        for card in found
        if (card.index == wanted if isinstance(wanted, int) else card.uuid.startswith(wanted))
    ]
    if len(fits) == 1:
        return fits[0]
    here = ", ".join(f"{card.index} ({card.uuid})" for card in found) or "none"
    problem = "more than one GPU" if fits else "no GPU"
    raise TargetError(f"{name} cannot start: {problem} {gpu} here; there are: {here}")


def _is_free(card: Card, fraction: float | None) -> bool:
    return card.free_bytes >= (DEFAULT_FRACTION if fraction is None else fraction) * card.total_bytes


def _why_not(name: str, card: Card, fraction: float | None) -> str:
    holders = []
    for pid in card.pids:
        with suppress(psutil.Error):
            holders.append(str(Holder.of(psutil.Process(pid))))
    by = f" by {' and '.join(holders)}" if holders else ""
    used, total = (card.total_bytes - card.free_bytes) / _GIB, card.total_bytes / _GIB
    share = DEFAULT_FRACTION if fraction is None else fraction
    return (
        f"{name} cannot start: {used:.1f} of {total:.1f} GiB of GPU {card.index} ({card.uuid}) are in use"
        f"{by}, and {share:.0%} must be free; end that, choose other `gpus`, or lower `gpu_memory_fraction`"
    )
