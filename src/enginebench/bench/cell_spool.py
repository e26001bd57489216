"""Keeps a cell's spool current, a little at a time: writing all streams at once would stall them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from enginebench.clock import monotonic_ns
from enginebench.model.capture import Capture
from enginebench.store.spool import RequestFacts, Spool
from enginebench.units import NS_PER_S

CURRENT_WITHIN_NS = 5 * NS_PER_S
"""What a stream gave reaches the spool no later than this, while `keep_current` is called often."""
_SHARE_PER_CALL = 40
_TO_DISK_EVERY_NS = NS_PER_S


def _no_failure(problem: str) -> None:
    raise RuntimeError(problem)


@dataclass(slots=True)
class CellSpool:
    """Takes ended captures at once, and those in flight every few seconds."""

    file: Spool
    facts: dict[int, RequestFacts] = field(default_factory=dict)
    """Of the requests in flight, by seq; shared with the load."""
    failed: Callable[[str], None] = _no_failure
    """Called once with the reason when the file cannot be written any more."""
    _written: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By seq: when a capture in flight was last written, and how many of its reads were."""
    _broken: bool = False
    _to_disk_ns: int = 0

    def finished(self, capture: Capture, facts: RequestFacts) -> None:
        _, n_reads = self._written.pop(capture.seq, (0, 0))
        self._guarded(lambda: self.file.append(capture, facts, n_reads))

    def keep_current(self, in_flight: Sequence[Capture]) -> None:
        """Writes a share of the captures that are due; to be called ten times a second."""
        now_ns = monotonic_ns()
        due = [c for c in in_flight if c.ending is None and self._is_due(c, now_ns)]
        for capture in due[: len(in_flight) // _SHARE_PER_CALL + 1]:
            self._guarded(lambda capture=capture: self._append(capture, now_ns))  # type: ignore[misc]
        if now_ns - self._to_disk_ns > _TO_DISK_EVERY_NS:
            self._to_disk_ns = now_ns
            self._guarded(self.file.flush)

    def close(self) -> None:
        self._guarded(self.file.close)

    def _is_due(self, capture: Capture, now_ns: int) -> bool:
        last_ns, _ = self._written.get(capture.seq, (capture.started_ns, 0))
        return now_ns - last_ns > CURRENT_WITHIN_NS - NS_PER_S and capture.seq in self.facts

    def _append(self, capture: Capture, now_ns: int) -> None:
        _, n_reads = self._written.get(capture.seq, (0, 0))
        self._written[capture.seq] = (now_ns, self.file.append(capture, self.facts[capture.seq], n_reads))

    def _guarded(self, write: Callable[[], object]) -> None:
        """A full disk ends the load; what is on the disk by then stays readable."""
        if self._broken:
            return
        try:
            write()
        except OSError as error:
            self._broken = True
            self.failed(f"cannot write the spool: {error.strerror}; make room, then --resume this run")
