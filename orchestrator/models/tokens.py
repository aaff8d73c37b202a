"""Counting a model's tokens without loading the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.errors import ModelUnavailable

CountTokens = Callable[[Sequence[str]], list[int]]


def count_tokens(model_path: str | Path) -> CountTokens:
    """A function from texts to their lengths in the model's tokens, special tokens left out.

    Raises: ModelUnavailable if the folder has no `tokenizer.json` that can be read.
    """
    from tokenizers import Tokenizer

    path = Path(model_path) / "tokenizer.json"
    if not path.is_file():
        raise ModelUnavailable(
            f"{model_path}: has no tokenizer.json, which counting tokens needs; "
            "give a folder with a fast tokenizer"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ModelUnavailable(f"{path}: cannot be read as a tokenizer ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(one.ids) for one in encoded]

    return count
