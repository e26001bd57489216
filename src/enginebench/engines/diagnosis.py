"""What is known to go wrong when an engine starts: how its log says it, what that means, what helps.

The table is data; its order is the order of looking, so what is special stands before what is general
(a full /dev/shm before a full disk). It knows these failures and no others: without a match nothing
is guessed, and the log's tail has to speak for itself.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trouble:
    id: str
    what: str
    advice: str
    patterns: tuple[re.Pattern[str], ...]
    """One of them in a line of the log's tail is enough."""

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}"


def diagnosed(log: str, exit_status: int | None = None) -> Trouble | None:
    """The first trouble of the table that the text tells of; None when it tells of none. A death by
    a signal that nobody of us sent is looked at last."""
    for trouble in TROUBLES:
        if any(pattern.search(log) for pattern in trouble.patterns):
            return trouble
    return _BY_SIGNAL.get(exit_status) if exit_status is not None else None


def _trouble(name: str, what: str, advice: str, *patterns: str) -> Trouble:
    return Trouble(name, what, advice, tuple(re.compile(text, re.IGNORECASE) for text in patterns))


TROUBLES = (
    _trouble(
        "docker-permission",
        "no permission to talk to the Docker daemon",
        "add yourself to the group `docker` and log in again, or set DOCKER_HOST to a daemon of your own",
        r"permission denied while trying to connect to the docker",
    ),
    _trouble(
        "docker-daemon",
        "the Docker client is here, but no Docker daemon answers it",
        "start the daemon (`sudo systemctl start docker`), set DOCKER_HOST, or use `via: process`",
        r"cannot connect to the docker daemon",
        r"failed to connect to the docker api",
        r"error during connect: .*docker",
    ),
    _trouble(
        "docker-gpus",
        "Docker cannot give a GPU to a container",
        "install the NVIDIA Container Toolkit and restart the Docker daemon",
        r"could not select device driver .*capabilities: \[\[gpu",
        r"nvidia-container-cli: initialization error",
        r"unresolvable CDI devices",
    ),
    _trouble(
        "image-missing",
        "the container image cannot be had",
        "check the option `image` and its tag; log in with `docker login` if it is private",
        r"pull access denied for",
        r"manifest for \S+ not found",
        r"manifest unknown",
        r"no such image",
        r"failed to resolve reference",
    ),
    _trouble(
        "driver-too-old",
        "the NVIDIA driver is too old for this build of the engine",
        "update the driver, or take an engine built for an older CUDA",
        r"nvidia driver on your system is too old",
        r"cuda driver version is insufficient for cuda runtime version",
        r"unsatisfied condition: (cuda|driver)",
        r"unsupported display driver / cuda driver combination",
    ),
    _trouble(
        "no-gpu",
        "the engine finds no GPU",
        "check `gpus` of the target and `nvidia-smi`, or take a build of the engine for CPUs",
        r"no cuda gpus are available",
        r"found no nvidia driver on your system",
        r"failed to infer device type",
        r"no cuda-capable device is detected",
    ),
    _trouble(
        "gpu-unsupported",
        "this build of the engine does not support the architecture of this GPU",
        "take a build for it, or another `dtype` or attention backend if it names one",
        r"no kernel image is available for execution on the device",
        r"cuda capability sm_\d+ is not compatible",
        r"only supports? ampere gpus or newer",
        r"only supported on gpus with compute capability",
    ),
    _trouble(
        "model-gated",
        "the model is gated or private, and this account may not read it",
        "accept its licence on its page, and export HF_TOKEN with a token of that account",
        r"gatedrepoerror",
        r"trying to access a gated repo",
        r"access to model \S+ is restricted",
        r"40[13] client error.* for url: https://huggingface\.co",
    ),
    _trouble(
        "tokenizer-missing",
        "the model's tokenizer is missing or cannot be read",
        "put its tokenizer files beside the weights, or name a tokenizer with `extra_args`",
        r"can't load tokenizer for",
        r"couldn't instantiate the backend tokenizer",
        r"failed to load (the )?tokenizer",
        r"tokenizer\.(json|model)\S* (does not exist|not found)",
        r"cannot find tokenizer (merges|vocab)",
        r"unknown pre-tokenizer type",
        r"error loading model vocabulary",
    ),
    _trouble(
        "model-unsupported",
        "this version of the engine does not know the model's architecture",
        "take a newer version of the engine, or another engine",
        r"model architectures? \[?\S+\]? (are|is) not supported",
        r"unknown model architecture",
        r"does not recognize this architecture",
        r"unsupported model (type|architecture)",
    ),
    _trouble(
        "hub-unreachable",
        "the model is not on this machine, and its hub cannot be reached",
        "download it first, name a folder of this machine as `model`, or unset HF_HUB_OFFLINE",
        r"couldn't connect to .?https://huggingface\.co",
        r"localentrynotfounderror",
        r"offline mode is enabled",
        r"cannot find the requested files in the (local|disk) cache",
        r"resolve host: huggingface\.co",
        r"huggingface\.co.*name resolution",
    ),
    _trouble(
        "model-missing",
        "there is no such model",
        "check `model` of the target: the id's spelling, or the path on this machine",
        r"repositorynotfounderror",
        r"not a local folder and is not a valid model identifier",
        r"404 client error.* for url: https://huggingface\.co",
        r"does not appear to have a file named config\.json",
        r"repo id must (be in the form|use alphanumeric)",
        r"failed to open gguf file",
        r"failed to load model from",
        r"\S+\.gguf\S*:? no such file",
        r"model .?\S+ not found, try pulling it first",
    ),
    _trouble(
        "kv-cache",
        "the GPU's memory leaves too little room for the KV cache",
        "lower `max_model_len` or `max_num_seqs`, raise `gpu_memory_fraction`, or use more GPUs",
        r"no available memory for the cache blocks",
        r"larger than the available kv cache memory",
        r"larger than the maximum number of tokens that can be stored in kv cache",
        r"not enough memory\. please try to increase --mem-fraction-static",
    ),
    _trouble(
        "gpu-memory",
        "out of GPU memory",
        "see with `nvidia-smi` who else uses it; otherwise lower `gpu_memory_fraction`, `max_model_len` or "
        "`max_num_seqs`, quantise, or raise `tensor_parallel`",
        r"(cuda|hip)\b.{0,20}out of memory",
        r"cudamalloc failed: out of memory",
        r"cuda_error_out_of_memory",
        r"torch\.(cuda\.)?outofmemoryerror",
        r"free memory on device .* is less than desired gpu memory utilization",
    ),
    _trouble(
        "shared-memory",
        "/dev/shm is too small for the engine's workers",
        "run the container with `--ipc=host` or a larger `--shm-size`",
        r"insufficient shared memory",
        r"/dev/shm\S*.*(no space left|failed|error)",
        r"(unable to write to file|shared memory segment).*(no space left|/dev/shm)",
    ),
    _trouble(
        "disk-full",
        "a disk is full",
        "make room where models (HF_HOME), images and temporary files are kept (`df -h`)",
        r"no space left on device",
        r"disk quota exceeded",
        r"not enough free disk space",
    ),
    _trouble(
        "host-memory",
        "out of host memory",
        "end what else uses it (`free -h`), or take a smaller model, context or KV cache",
        r"defaultcpuallocator: (can't|not enough memory)",
        r"cannot allocate memory",
        r"std::bad_alloc",
        r"\bmemoryerror\b",
        r"insufficient memory \(attempted to allocate",
        r"\boom[-_ ]?kill",
    ),
    _trouble(
        "port-taken",
        "its port was taken before the engine could listen on it",
        "stop whoever listens there (`ss -ltnp`), or choose another `port`",
        r"address already in use",
        r"port is already allocated",
        r"couldn't bind (http server socket|to server socket)",
    ),
    _trouble(
        "unknown-flag",
        "this version of the engine does not know a flag that it was given",
        "compare the options and `extra_args` of the target with the engine's own --help",
        r"error: unrecognized arguments?:",
        r"error: unexpected argument",
        r"error: invalid argument: -",
        r"error: no such option: -",
    ),
    _trouble(
        "no-permission",
        "the engine may not read or write a file",
        "check who owns the files that the log names, the model's folder and HF_HOME among them",
        r"\[errno 13\]",
        r"permission denied",
    ),
)

_BY_SIGNAL = {
    status: _trouble(
        "killed",
        "somebody killed it with SIGKILL, most often the kernel for want of host memory",
        "look into `dmesg`, and see `free -h`",
    )
    # As a process, and as a container's client tells it.
    for status in (-signal.SIGKILL, 128 + signal.SIGKILL)
} | {
    status: _trouble(
        "illegal-instruction",
        "this build of the engine uses instructions that this CPU does not have",
        "take a build for an older CPU",
    )
    for status in (-signal.SIGILL, 128 + signal.SIGILL)
}
"""What the way of dying tells by itself; no log line says it."""
