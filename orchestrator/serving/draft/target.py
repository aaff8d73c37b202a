"""What of the target a draft is trained against; nothing of it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


class Target:
    """Configuration, weights by their Hugging Face names, and how it ends."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoConfig

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.config: Any = AutoConfig.from_pretrained(folder)
        self.weights: dict[str, Tensor] = {}
        for file in sorted(folder.glob("*.safetensors")):
            self.weights.update(load_file(str(file), device=self.device))
        self.embedding = self.weights["model.embed_tokens.weight"]
        self.output = self.weights.get("lm_head.weight", self.embedding)
        self._norm = self.weights["model.norm.weight"]

    def normed(self, last: Tensor) -> Tensor:
        """Of the last layer's state, what the output matrix reads."""
        return functional.rms_norm(
            last, (last.shape[-1],), self._norm.to(last.dtype), float(self.config.rms_norm_eps)
        )
