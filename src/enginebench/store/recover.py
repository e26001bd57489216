"""From spool to records: at the end of every cell, and after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from enginebench.errors import StorageError
from enginebench.model.capture import Capture
from enginebench.model.plan import CellResult, Window
from enginebench.model.record import Decoded, Record
from enginebench.store.folder import RunFolder, locked, plain_cell
from enginebench.store.keys import look_up
from enginebench.store.records import RecordWriter, n_rows
from enginebench.store.spool import CellHeader, RequestFacts, read_spool
from enginebench.store.telemetry import merge_telemetry
from enginebench.wire.decode import decode


def decode_spool(path: Path, records_path: Path, secrets: tuple[str, ...], keep_text: bool) -> int | None:
    """Decodes a whole spool into one records file and deletes the spool. Returns the start of the
    measured window that the spool was marked with. Raises StorageError, and then keeps the spool."""
    n_records = 0
    try:
        reader = read_spool(path)
        with RecordWriter(records_path) as writer:
            for capture, facts in reader:
                decoded = decode(capture, secrets)
                if not keep_text:
                    decoded.text = None
                writer.add(assemble(reader.header, facts, capture, decoded))
                n_records += 1
    except OSError as error:
        raise StorageError(
            f"cannot turn {path} into {records_path}: {error.strerror or error}; what is in the folder "
            "stays: when the cause is gone, `enginebench report` on it goes on from there"
        ) from error
    if n_rows(records_path) != n_records:
        raise StorageError(f"{records_path} does not hold what was written to it; {path} is kept")
    path.unlink()
    return reader.window_start_ns


def assemble(header: CellHeader, facts: RequestFacts, capture: Capture, decoded: Decoded) -> Record:
    """One record from what was asked, what came over the wire and what it means."""
    cell = header.cell
    return Record(
        target=cell.target,
        load=cell.load,
        level=float(cell.level),
        repeat=cell.repeat,
        phase=capture.phase,
        seq=capture.seq,
        session=None,
        turn=None,
        worker=header.worker,
        endpoint=header.endpoint,
        engine_start=header.engine_start,
        intended_ns=capture.intended_ns,
        started_ns=capture.started_ns,
        connected_ns=capture.connected_ns,
        tls_ns=capture.tls_ns,
        sent_ns=capture.sent_ns,
        headers_ns=capture.headers_ns,
        done_ns=capture.done_ns,
        status=capture.status,
        outcome=decoded.outcome,
        error_kind=decoded.error_kind,
        error_message=decoded.error_message,
        http_version=capture.http_version,
        retried=capture.retried,
        connection_reused=capture.connection_reused,
        clock_stepped=capture.clock_stepped,
        stamp_source=capture.stamp_source,
        chunks=decoded.chunks,
        prompt_tokens=decoded.prompt_tokens,
        output_tokens=decoded.output_tokens,
        reasoning_tokens=decoded.reasoning_tokens,
        cached_tokens=decoded.cached_tokens,
        reference_tokens=None,
        token_source=decoded.token_source,
        asked_prompt_tokens=facts.asked_prompt_tokens,
        asked_output_tokens=facts.asked_output_tokens,
        finish_reason=decoded.finish_reason,
        prompt_sha256=facts.prompt_sha256,
        output_chars=decoded.output_chars,
        output_bytes=decoded.output_bytes,
        text=decoded.text,
        server_timings=decoded.server_timings,
        ratelimit=decoded.ratelimit,
        request_id=decoded.request_id,
    )


def recover_dead_run(folder: RunFolder) -> None:
    """Turns what a crash left in the spool into records and a broken-off cell in run.json.

    Does nothing for a run that is alive or that ended in order.
    """
    left = [*folder.spools(), *folder.telemetry_spools()]
    if not left and folder.read_meta()["status"] != "running":
        return
    if not os.access(folder.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        return  # a copy on a read-only disk: shown as far as it was stored
    with locked(folder) as ours:
        if ours:
            meta = folder.read_meta()
            recover_spools(folder, meta)
            merge_telemetry(folder)
            if meta["status"] == "running":
                meta["status"] = "crashed"
            folder.write_meta(meta)


def recover_spools(folder: RunFolder, meta: dict[str, Any]) -> None:
    """Decodes every spool of `folder` and lists its cell in `meta` as broken off. The caller holds
    the run's lock."""
    secrets = tuple(_keys(meta["scenario"]["targets"]))
    for path in folder.spools():
        try:
            header = read_spool(path).header
        except ValueError:
            _set_aside(path, meta)
            continue
        keep_text = bool(meta["scenario"].get("keep_text"))
        start_ns = decode_spool(path, folder.records_path(header.cell, header.worker), secrets, keep_text)
        window = Window(start_ns, None) if start_ns is not None else None
        broken = CellResult(header.cell, window, header.engine_start, False, "the run ended in this cell", {})
        known = [c for c in meta["cells"] if c["cell"] != plain_cell(broken)["cell"]]
        meta["cells"] = [*known, plain_cell(broken)]


def _set_aside(path: Path, meta: dict[str, Any]) -> None:
    """A spool without a readable header: empty when the run ended before it reached the disk, and
    else perhaps one that another version can read."""
    if path.stat().st_size == 0:
        path.unlink()
        return
    kept = path.with_suffix(".unreadable")
    path.rename(kept)
    note = f"{kept.name} in the folder spool cannot be read by this version; it was left as it is"
    meta["notes"] = [*meta.get("notes", []), note]


def _keys(targets: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The API keys that the scenario refers to, as far as they can still be looked up."""
    for target in targets:
        with suppress(OSError, UnicodeDecodeError):
            if key := look_up(target.get("api_key_env"), target.get("api_key_file")):
                yield key
