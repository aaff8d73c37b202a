"""What a training is told, and the files it leaves behind."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Method = Literal["eagle", "distill"]


@dataclass(frozen=True)
class Job:
    """Everything that determines the draft; kept as `job.json` in the working folder."""

    name: str
    target: str
    """Folder of the target: configuration, safetensors weights, tokenizer with a chat template."""
    method: Method
    seed: int
    train_tokens: int
    """Tokens of the target's own answers to learn from."""
    answer_tokens: int
    """Longest answer."""
    context: int
    """Longest prompt and answer together, in tokens."""
    own_prompts: int
    """Prompts that the target writes itself."""
    requests: int
    """Answers written at once."""
    passes: float
    """How often the text is read in training."""
    speculation_length: int
    draft_vocabulary: int
    """An EAGLE head proposes the most frequent tokens only: its output matrix costs time."""
    layers: int
    """A distilled draft keeps as many layers of the target."""


@dataclass(frozen=True)
class TrainingPrompt:
    id: str
    category: str
    text: str
    system: str | None
    held_out: bool


class Workplace:
    """The working folder of one training: whatever is whole is kept when it is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def text(self) -> Path:
        return self.folder / "text"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    @property
    def draft(self) -> Path:
        return self.folder / "draft"

    @property
    def report(self) -> Path:
        return self.folder / "report.json"

    def write(self, job: Job, prompts: list[TrainingPrompt]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(asdict(prompt)) + "\n" for prompt in prompts)
        replace_text(self.folder / "prompts.jsonl", lines)
        replace_text(self.folder / "job.json", json.dumps(asdict(job), indent=1) + "\n")

    def job(self) -> Job:
        return Job(**json.loads((self.folder / "job.json").read_text(encoding="utf-8")))

    def prompts(self) -> list[TrainingPrompt]:
        lines = (self.folder / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
        return [TrainingPrompt(**json.loads(line)) for line in lines]


def replace_text(path: Path, text: str) -> None:
    """Writes the file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
