"""Tokenizers from a local tokenizer.json, through the optional `tokenizers` package.

Nothing is downloaded: a run must not depend on a hub being reachable, or on what it holds today.
"""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING

from enginebench.errors import UserError

if TYPE_CHECKING:
    import tokenizers

    from enginebench.workload.fitting import Tokenizer


class LocalTokenizer:
    """Counts the tokens of plain text: no BOS or EOS, no chat template, no truncation."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """The tokenizer at `path`: a tokenizer.json, or a folder that holds one.

    Raises UserError when the package or the file is missing, or the file is not one.
    """
    file = _tokenizer_file(str(path))
    try:
        from tokenizers import Tokenizer as Backend
    except ImportError as error:
        raise UserError(
            "`tokenizer` needs an extra package: pip install 'enginebench[tokenizers]' "
            "(or leave `tokenizer` out: lengths are then right to about 1 % for most models)"
        ) from error
    try:
        return LocalTokenizer(Backend.from_str(file.read_text(encoding="utf-8")))
    except Exception as error:  # the package raises plain Exception for whatever the file lacks
        raise UserError(f"{file} is not a usable tokenizer.json: {str(error)[:200]}") from error


def _tokenizer_file(asked: str) -> Path:
    # os.path takes any text: Path raises for names too long and for unknown ~users.
    path = Path(os.path.expanduser(asked))
    is_folder = os.path.isdir(path)
    file = path / "tokenizer.json" if is_folder else path
    if os.path.isfile(file):
        return file
    if is_folder:
        raise UserError(
            f"no tokenizer.json in {path}; enginebench reads that format only "
            "(transformers' `save_pretrained` writes it next to the model)"
        )
    if asked.count("/") == 1 and not asked.startswith((".", "/", "~")) and path.suffix != ".json":
        raise UserError(
            f"no tokenizer at {asked}; if that is a model on a hub, fetch its file first: "
            f"`hf download {asked} tokenizer.json --local-dir tokenizer`, then write `tokenizer: tokenizer`"
        )
    raise UserError(f"no tokenizer at {asked}: write the path of a tokenizer.json, or of a folder with one")
