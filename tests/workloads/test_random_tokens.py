"""Random tokens come only by name, and say what they are everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.errors import WorkloadError
from orchestrator.workloads.load import load_prompts
from orchestrator.workloads.prompt_set import PromptSet


class PairTokenizer:
    """Token i is the letter i; reading back, "ab" is one token, so that lengths do not survive."""

    vocabulary_size = 27
    letters = "abcdefghijklmnopqrstuvwxyz "

    def encode(self, text: str) -> Sequence[int]:
        return [self.letters.index(letter) for letter in text.replace("ab", "A").lower()]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(self.letters[i] for i in token_ids)


def load(reference: str) -> PromptSet:
    return load_prompts(reference, base=Path(), tokenizer=PairTokenizer())


def test_name_category_treatment_and_notes_say_random_tokens() -> None:
    found = load("random:count=5,tokens=40,seed=3")
    assert found.name == "random-tokens-40"
    assert found.categories == {"random-tokens": 5}
    assert found.treatment == "random-tokens"
    assert "not comparable" in found.notes[0]
    assert [prompt.tokens for prompt in found.prompts] == [40] * 5


def test_the_seed_decides_and_is_part_of_the_content() -> None:
    assert load("random:count=2,tokens=9,seed=3") == load("random:count=2,tokens=9,seed=3")
    assert (
        load("random:count=2,tokens=9,seed=3").hash != load("random:count=2,tokens=9,seed=4").hash
    )


@pytest.mark.parametrize("reference", ["random:", "random:64", "random:count=0,tokens=5"])
def test_other_spellings_say_the_right_one(reference: str) -> None:
    with pytest.raises(WorkloadError, match=r"must be random:count=N,tokens=N\[,seed=N\]"):
        load(reference)


def test_without_the_targets_tokenizer_there_are_none() -> None:
    with pytest.raises(WorkloadError, match="needs the target's tokenizer"):
        load_prompts("random:count=1,tokens=1", base=Path())
