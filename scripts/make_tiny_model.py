#!/usr/bin/env python3
"""Write a tiny Llama with random weights, for tests of real engines: the same one for each of them.

    make_tiny_model.py FOLDER        FOLDER/tiny-llama.gguf (10 MB, 5 M parameters), for llama.cpp
                                     FOLDER/tiny-llama/ (safetensors), for vLLM and transformers
                                     FOLDER/tokenizer.json

Needs numpy and gguf only (no torch). The same bytes come out every time: weights from a seed,
the vocabulary from the word list below. What the model says is noise, often cut inside a UTF-8
character; its speed, its batching and its streams are those of the real engine. Decoded greedily
it never ends by itself, so that outputs are equally long where an engine knows no `ignore_eos`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT = 256, 4, 4, 2, 768, 4096
VOCABULARY = 4096
NORM_EPS, ROPE_BASE = 1e-5, 10_000.0
WEIGHT_STDEV = 0.05
SEED = 0
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
BOS, EOS = 0, 2
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = """
the of and to in is that for it was on are as with his they be at one have this from or had by hot
but some what there we can out other were all your when up use word how said an each she which do
their time if will way about many then them would write like so these her long make thing see him
two has look more day could go come did my sound no most number who over know water than call first
people may down side been now find any new work part take get place made live where after back
little only round man year came show every good me give our under name very through just form much
great think say help low line before turn cause same mean differ move right boy old too does tell
sentence set three want air well also play small end put home read hand port large spell add even
land here must big high such follow act why ask men change went light kind off need house picture
try us again animal point mother world near build self earth father head stand own page should
country found answer school grow study still learn plant cover food sun four thought let keep eye
never last door between city tree cross since hard start might story saw far sea draw left late run
while press close night real life few stop open seem together next white children begin got walk
example ease paper often always music those both mark book letter until mile river car feet care
second group carry took rain eat room friend began idea fish mountain north once base hear horse
cut sure watch color face wood main enough plain girl usual young ready above ever red list though
feel talk bird soon body dog family direct pose leave song measure state product black short numeral
class wind question happen complete ship area half rock order fire south problem piece told knew
pass farm top whole king size heard best hour better true during hundred remember step early hold
west ground interest reach fast five sing listen six table travel less morning ten simple several
vowel toward war lay against pattern slow center love person money serve appear road map science
rule govern pull cold notice voice fall power town fine certain fly unit lead cry dark machine note
wait plan figure star box noun field rest correct able pound done beauty drive stood contain front
teach week final gave green quick develop sleep warm free minute strong special mind behind clear
tail produce fact street inch lot nothing course stay wheel full force blue object decide surface
deep moon island foot yet busy test record boat common gold possible plane age dry wonder laugh
thousand ago ran check game shape yes miss brought heat snow bed bring sit perhaps fill east weight
language among system model request server token engine data function return value string error
file code import class self none list index name type result total count while print memory cache
batch latency throughput client stream prompt answer text output input process thread network
"""
"""Mostly the commonest words of English, then words of the trade."""


def byte_symbols() -> list[str]:
    """The printable stand-in of each byte, as GPT-2's byte-level BPE defines them."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    symbols, hidden = {}, 0
    for byte in range(256):
        if byte in shown:
            symbols[byte] = chr(byte)
        else:
            symbols[byte] = chr(256 + hidden)
            hidden += 1
    return [symbols[byte] for byte in range(256)]


def vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens by id, and merges by rank.

    Each word grows letter by letter, so a merge always has one letter on its right and BPE finds
    the longest known beginning of a word. Words with a leading space come first: their merges
    then never compete with those inside a word.
    """
    symbols = byte_symbols()
    tokens = [*SPECIAL, *symbols]
    known, merges = set(tokens), []
    words = list(dict.fromkeys(WORDS.split()))
    for text in [*(" " + word for word in words), *words, *(word.capitalize() for word in words)]:
        spelled = [symbols[byte] for byte in text.encode()]
        for end in range(1, len(spelled)):
            left, right = "".join(spelled[:end]), spelled[end]
            if len(tokens) < VOCABULARY and left + right not in known:
                known.add(left + right)
                tokens.append(left + right)
                merges.append((left, right))
    assert len(tokens) == VOCABULARY, f"{len(tokens)} tokens: add words"
    return tokens, merges


def bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded to nearest (ties away from zero)."""
    return ((values.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def weights() -> dict[str, NDArray[np.float32]]:
    """Every tensor under its GGUF name; matrices as [out, in]."""
    rng = np.random.default_rng(SEED)

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        values = rng.normal(0.0, WEIGHT_STDEV, (rows, columns)).astype(np.float32)
        # One file holds bfloat16, the other float16, which has more digits: both then hold the same.
        return (bfloat16_bits(values).astype(np.uint32) << 16).view(np.float32)

    ones = np.ones(HIDDEN, np.float32)
    kv = HIDDEN // HEADS * KV_HEADS
    tensors = {"token_embd.weight": matrix(VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        shapes = {
            "attn_q": (HIDDEN, HIDDEN),
            "attn_k": (kv, HIDDEN),
            "attn_v": (kv, HIDDEN),
            "attn_output": (HIDDEN, HIDDEN),
            "ffn_gate": (FEED_FORWARD, HIDDEN),
            "ffn_up": (FEED_FORWARD, HIDDEN),
            "ffn_down": (HIDDEN, FEED_FORWARD),
        }
        tensors |= {f"blk.{layer}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}
        tensors |= {f"blk.{layer}.{name}.weight": ones for name in ("attn_norm", "ffn_norm")}
    output = matrix(VOCABULARY, HIDDEN)
    # Their score is always 0, below the best of 4,096 random ones.
    output[: len(SPECIAL)] = 0
    return tensors | {"output_norm.weight": ones, "output.weight": output}


HF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hf_tensor(name: str, tensor: NDArray[np.float32]) -> tuple[str, NDArray[np.float32]]:
    """A tensor as transformers names it and lays it out. GGUF keeps the two numbers that RoPE turns
    together side by side in each head, transformers half a head apart."""
    *block, kind, _ = name.split(".")
    prefix = f"model.layers.{block[1]}." if block else ""
    if kind in ("attn_q", "attn_k"):
        heads = HEADS if kind == "attn_q" else KV_HEADS
        rows, columns = tensor.shape
        tensor = tensor.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
    return f"{prefix}{HF_NAMES[kind]}.weight", tensor


def write_safetensors(path: Path) -> None:
    """Layout: length of the header (little-endian, 8 bytes), the header (JSON), the tensors."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts, offset = [], 0
    for name, tensor in (hf_tensor(*item) for item in weights().items()):
        part = bfloat16_bits(np.ascontiguousarray(tensor)).tobytes()
        end = offset + len(part)
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        parts.append(part)
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *parts]))


def write_hf(folder: Path) -> None:
    ids = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": BOS}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HIDDEN // HEADS,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": NORM_EPS,
        "rope_theta": ROPE_BASE,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_BASE},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "vocab_size": VOCABULARY,
        "dtype": "bfloat16",
        **ids,
    }
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[BOS],
        "eos_token": SPECIAL[EOS],
        "pad_token": SPECIAL[BOS],
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONTEXT,
    }
    folder.mkdir()
    write_safetensors(folder / "model.safetensors")
    for name, value in (("config", config), ("generation_config", ids), ("tokenizer_config", tokenizer)):
        (folder / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n")
    (folder / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)


def write_gguf(path: Path) -> None:
    tokens, merges = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-llama, random weights")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(NORM_EPS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    kinds = gguf.TokenType
    writer.add_token_types([kinds.CONTROL if token in SPECIAL else kinds.NORMAL for token in tokens])
    writer.add_token_merges([f"{left} {right}" for left, right in merges])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_pad_token_id(BOS)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, tensor in weights().items():
        writer.add_tensor(name, tensor if tensor.ndim == 1 else tensor.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tokenizer_json() -> str:
    """The same vocabulary as the `tokenizers` package reads it."""
    tokens, merges = vocabulary()
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [{"id": i, "content": text, **flags} for i, text in enumerate(SPECIAL)],
            "pre_tokenizer": byte_level,
            "decoder": byte_level,
            "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges},
        },
        ensure_ascii=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed, so that a broken-off run leaves no half a model.
    unfinished = folder / f".tiny-llama.{os.getpid()}"
    write_gguf(unfinished)
    unfinished.replace(folder / "tiny-llama.gguf")
    unfinished.write_text(tokenizer_json(), encoding="utf-8")
    unfinished.replace(folder / "tokenizer.json")
    write_hf(unfinished)
    shutil.rmtree(folder / "tiny-llama", ignore_errors=True)
    unfinished.rename(folder / "tiny-llama")
    print(folder / "tiny-llama.gguf", folder / "tiny-llama", sep="\n")


if __name__ == "__main__":
    main()
