"""Counting a model's tokens without loading the model."""

from __future__ import annotations

import json
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


def special_tokens(model_path: str | Path) -> tuple[str, ...]:
    """The texts that the tokenizer takes for control tokens, as its file marks them.

    Undefined: empty without `tokenizer.json`, or where it marks none.
    Raises: ModelUnavailable if the file is not JSON.
    """
    path = Path(model_path) / "tokenizer.json"
    try:
        added = json.loads(path.read_text(encoding="utf-8")).get("added_tokens") or []
    except FileNotFoundError:
        return ()
    except (ValueError, AttributeError) as error:
        raise ModelUnavailable(f"{path}: must be a JSON object, and is not ({error})") from error
    return tuple(str(token["content"]) for token in added if token.get("special"))
