"""Local tokenizers count plain text, give exact prompts, and never reach for a hub."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, processors, trainers

from enginebench.catalog.tokenizers import load_tokenizer
from enginebench.errors import UserError
from enginebench.model.scenario import TokenCount, Workload
from enginebench.workload.prompts import make_request
from enginebench.workload.words import WORDS


def trained(n_tokens: int) -> tokenizers.Tokenizer:
    """A byte-level BPE of our own, with a BOS token, truncation and padding as some files have them."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens,
        special_tokens=["<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(WORDS["english"])] * 3, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer.enable_truncation(max_length=16)
    tokenizer.enable_padding(length=16)
    return tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    trained(700).save(str(path / "tokenizer.json"))
    return path


def test_a_folder_and_its_file_are_the_same_tokenizer(folder: Path) -> None:
    text = "the quick brown fox"
    assert load_tokenizer(folder).count(text) == load_tokenizer(folder / "tokenizer.json").count(text) > 0


def test_neither_bos_nor_truncation_nor_padding_is_counted(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    assert tokenizer.count("") == 0
    assert tokenizer.count("a") == 1
    assert tokenizer.count(" a" * 100) == 100


@pytest.mark.parametrize("language", ["english", "chinese", "code"])
@pytest.mark.parametrize("n", [1, 5, 64, 300])
def test_prompts_have_exactly_the_asked_length_where_words_are_several_tokens(
    folder: Path, language: Any, n: int
) -> None:
    tokenizer = load_tokenizer(folder)
    workload = Workload(language=language, input_tokens=TokenCount("fixed", n))
    prompts = [make_request(workload, 7, seq, tokenizer).prompt for seq in range(10)]
    assert {tokenizer.count(prompt) for prompt in prompts} == {n}
    assert n == 1 or len(set(prompts)) == 10


def test_a_hub_name_is_answered_with_the_way_to_get_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        load_tokenizer("org/model")
    assert str(caught.value) == (
        "no tokenizer at org/model; if that is a model on a hub, fetch its file first: "
        "`hf download org/model tokenizer.json --local-dir tokenizer`, then write `tokenizer: tokenizer`"
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no tokenizer at .*x\.json: write the path of a tokenizer\.json"):
        load_tokenizer(tmp_path / "x.json")


def test_a_folder_without_the_file_says_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no tokenizer\.json in .*; enginebench reads that format only"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", ["{}", "not json", '{"model": {"type": "BPE"}}'])
def test_a_file_that_is_no_tokenizer_says_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"tokenizer\.json is not a usable tokenizer\.json: "):
        load_tokenizer(file)


def test_without_the_package_the_error_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is how Python marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"pip install 'enginebench\[tokenizers\]'"):
        load_tokenizer(folder)
