"""The loop both kinds of draft are trained by: steps counted, checkpoints whole, schedule known."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from orchestrator.serving.draft.said import say

WARMUP_STEPS = 40
TOKENS_A_STEP = 1024
_STEPS_A_PASS_MIN = 8
CHECKPOINT_S = 60.0
_STATE = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Pace:
    """How much is read in a step, and how many steps there are."""

    tokens: int
    steps: int


def pace_of(tokens: int, passes: float) -> Pace:
    """For so many readings of a text of so many tokens; a short text is read in smaller bites."""
    bite = max(1, min(TOKENS_A_STEP, tokens // _STEPS_A_PASS_MIN))
    return Pace(bite, max(1, round(passes * tokens / bite)))


class Learning:
    """AdamW with warm-up and cosine decay over a known number of steps; resumable."""

    def __init__(self, module: nn.Module, steps: int, peak: float, checkpoint: Path) -> None:
        self._named = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self._optimizer = torch.optim.AdamW(
            self._named.values(), lr=peak, betas=(0.9, 0.95), weight_decay=0.01
        )
        self._steps, self._peak, self._checkpoint = steps, peak, checkpoint
        self.step = 0
        if checkpoint.exists():
            self._restore()

    def run(self, loss_of: Callable[[int], Tensor]) -> None:
        """Until all steps are done; `loss_of` is given the number of the step.

        Raises: RuntimeError when the loss is no number: the rate was too high.
        """
        saved = said = time.monotonic()
        while self.step < self._steps:
            rate = self._rate()
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            loss = loss_of(self.step)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise RuntimeError(
                    f"step {self.step}: the loss must be a number, got {value}; "
                    "learn from more text, or remove the checkpoint and begin again"
                )
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._named.values(), 1.0)
            self._optimizer.step()
            self.step += 1
            now = time.monotonic()
            if now - said > 5 or self.step == self._steps:
                say("train", step=self.step, of=self._steps, loss=round(value, 4))
                said = now
            if now - saved > CHECKPOINT_S or self.step == self._steps:
                self.save()
                saved = now

    def _rate(self) -> float:
        if self.step < WARMUP_STEPS:
            return self._peak * (self.step + 1) / WARMUP_STEPS
        done = (self.step - WARMUP_STEPS) / max(1, self._steps - WARMUP_STEPS)
        return self._peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))

    def save(self) -> None:
        tensors = {f"parameter.{n}": p.detach().contiguous() for n, p in self._named.items()}
        for name, parameter in self._named.items():
            for key in _STATE:
                tensors[f"{key}.{name}"] = self._optimizer.state[parameter][key].contiguous()
        partial = self._checkpoint.with_name(f".{self._checkpoint.name}.partial")
        save_file(tensors, str(partial), metadata={"state": json.dumps({"step": self.step})})
        partial.replace(self._checkpoint)

    def _restore(self) -> None:
        with safe_open(str(self._checkpoint), framework="pt") as kept, torch.no_grad():
            self.step = int(json.loads(kept.metadata()["state"])["step"])
            for name, parameter in self._named.items():
                parameter.copy_(kept.get_tensor(f"parameter.{name}"))
                self._optimizer.state[parameter] = {
                    "step": torch.tensor(float(self.step)),
                    **{
                        key: kept.get_tensor(f"{key}.{name}").to(parameter.device) for key in _STATE
                    },
                }
        say("train", step=self.step, of=self._steps, note="resumed")
