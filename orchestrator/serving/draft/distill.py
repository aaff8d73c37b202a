"""A small draft model of the target's family: some of its layers, trained to agree with it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orchestrator.serving.draft.job import Job, Workplace
from orchestrator.serving.draft.learning import Learning, pace_of
from orchestrator.serving.draft.sequences import (
    Batch,
    Sequence_,
    batch_of,
    frequent_tokens,
    shuffled_batches,
)
from orchestrator.serving.draft.target import Target

PEAK_RATE = 6e-4


def layers_taken(count: int, of: int) -> list[int]:
    """Evenly spaced, the first and the last among them."""
    if count == 1:
        return [of - 1]
    return [round(index * (of - 1) / (count - 1)) for index in range(count)]


def small_copy(target: Target, layers: int) -> Any:
    """A causal model with so many of the target's layers, in float32."""
    from transformers import AutoModelForCausalLM

    config = type(target.config)(
        **{**target.config.to_dict(), "num_hidden_layers": layers, "layer_types": None}
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    taken = layers_taken(layers, int(target.config.num_hidden_layers))
    weights = {name: tensor for name, tensor in target.weights.items() if ".layers." not in name}
    for index, source in enumerate(taken):
        prefix = f"model.layers.{source}."
        for name, tensor in target.weights.items():
            if name.startswith(prefix):
                weights[f"model.layers.{index}.{name.removeprefix(prefix)}"] = tensor
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or [name for name in missing if name != "lm_head.weight"]:
        raise RuntimeError(
            f"the target's weights must fit its own configuration; missing {missing[:3]}, "
            f"unexpected {unexpected[:3]}"
        )
    for part in (model.get_input_embeddings(), model.get_output_embeddings()):
        part.weight.requires_grad_(False)
    return model


def train_small(
    job: Job, workplace: Workplace, sequences: Sequence[Sequence_], target: Target
) -> Any:
    torch.manual_seed(job.seed)
    learned = [one for one in sequences if not one.held_out]
    rows = target.output[frequent_tokens(learned, job.draft_vocabulary, len(target.embedding))]
    model = small_copy(target, job.layers).to(target.device)
    pace = pace_of(sum(len(one.tokens) for one in learned), job.passes)
    batches = shuffled_batches(learned, pace.tokens, random.Random(job.seed))
    learning = Learning(model, pace.steps, PEAK_RATE, workplace.checkpoint)
    for _ in range(learning.step):
        next(batches)
    learning.run(lambda _: small_loss(model, target, rows, batch_of(next(batches), target.device)))
    return model


def small_loss(model: Any, target: Target, rows: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy against the target's own distribution, over all tokens but the first."""
    wanted = batch.inside[:, 1:]
    with torch.no_grad():
        last = target.normed(batch.hidden[:, :-1, -target.config.hidden_size :][wanted])
        probabilities = torch.softmax((last @ rows.T).float(), dim=-1)
    with torch.autocast(target.device, torch.bfloat16):
        state = model.model(batch.tokens[:, :-1]).last_hidden_state[wanted]
        logits = state @ rows.T
    loss: Tensor = -(probabilities * torch.log_softmax(logits.float(), -1)).sum(-1).mean()
    return loss


def small_matches(
    model: Any, sequences: Sequence[Sequence_], steps: int, device: str
) -> Iterator[tuple[str, list[list[bool]]]]:
    """For `expected_acceptance`: where each draft could begin, which of its tokens are right."""
    with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
        for one in sequences:
            first = len(one.tokens) - one.answer
            logits = model(one.tokens[None, :-1].to(device)).logits[0, first:]
            right = (logits.argmax(-1).cpu() == one.tokens[first + 1 :]).tolist()
            yield (
                one.category,
                [right[begin : begin + steps] for begin in range(len(right) - steps + 1)],
            )


def write_small(model: Any, folder: Path, tokenizer: Path) -> None:
    """A folder that vLLM and transformers load, the target's tokenizer beside the weights."""
    from transformers import AutoTokenizer

    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
