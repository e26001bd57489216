"""Runs llama.cpp's own HTTP server out of the xllamacpp wheel, where no llama-server binary is at hand.

Run by path by the Python of the engine's environment (launchers/llamacpp.yaml, form `wheel`): it may
import nothing but the standard library and xllamacpp, and nothing of enginebench. The server is
llama.cpp's C++ code, the same that the llama-server binary runs; only its settings come from here.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import signal
import sys


def main() -> None:
    asked = _arguments()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = asked.model
    params.model_alias = {asked.alias}
    params.hostnames = [asked.host]
    params.port = asked.port
    params.n_parallel = asked.parallel
    # llama.cpp shares one context among its slots.
    params.n_ctx = asked.context_per_slot * asked.parallel
    params.cache_prompt = asked.cache_prompt
    params.endpoint_metrics = True
    if asked.batch_size is not None:
        params.n_batch = params.n_ubatch = asked.batch_size
    if asked.threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = asked.threads
    if asked.cache_type is not None:
        params.cache_type_k = params.cache_type_v = _cache_type(xllamacpp, asked.cache_type)
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        sys.exit(f"llama.cpp server did not start: {error}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    print(f"listening on {server.listening_address}", flush=True)
    while True:
        signal.pause()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="llama.cpp's server, from the xllamacpp wheel")
    version = f"xllamacpp {importlib.metadata.version('xllamacpp')}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--alias", required=True, help="name under which requests ask for it")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=4, help="slots: sequences in one batch")
    parser.add_argument("--context-per-slot", type=int, default=2048, help="tokens")
    parser.add_argument("--batch-size", type=int, help="tokens in one step, prompts included")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cache-type", help="of keys and values: f16, q8_0, ...")
    parser.add_argument("--cache-prompt", action=argparse.BooleanOptionalAction, default=True)
    return parser.parse_args()


def _cache_type(xllamacpp: object, name: str) -> object:
    kinds = xllamacpp.ggml_type  # type: ignore[attr-defined]
    kind = getattr(kinds, f"GGML_TYPE_{name.upper()}", None)
    if kind is None:
        sys.exit(f"unknown cache type {name!r}")
    return kind


if __name__ == "__main__":
    main()
