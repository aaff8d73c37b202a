"""Trains an EAGLE-3 head on the target's own text and hidden states."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from orchestrator.serving.draft.head import Chain, EagleHead, from_target
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

PEAK_RATE = 5e-4
DISCOUNT = 0.8
"""Weight of each further draft token in the loss: it matters only if the ones before were right."""
STATES = 2


def train_head(
    job: Job, workplace: Workplace, sequences: Sequence[Sequence_], target: Target
) -> tuple[EagleHead, Tensor]:
    """The head, and the ids of the tokens it can propose."""
    torch.manual_seed(job.seed)
    learned = [one for one in sequences if not one.held_out]
    ids = frequent_tokens(learned, job.draft_vocabulary, len(target.embedding))
    head = from_target(target.config, target.weights, STATES).to(target.device)
    pace = pace_of(sum(len(one.tokens) for one in learned), job.passes)
    batches = shuffled_batches(learned, pace.tokens, random.Random(job.seed))
    learning = Learning(head, pace.steps, PEAK_RATE, workplace.checkpoint)
    for _ in range(learning.step):
        next(batches)
    rows = target.output[ids]

    def loss_of(step: int) -> Tensor:
        unrolled = 2 if step < pace.steps // 2 else job.speculation_length
        return head_loss(head, target, rows, batch_of(next(batches), target.device), unrolled)

    learning.run(loss_of)
    return head, ids


def head_loss(head: EagleHead, target: Target, rows: Tensor, batch: Batch, steps: int) -> Tensor:
    """Cross-entropy against the target's own distribution over the draft's tokens.

    Formula: mean over steps j, weight DISCOUNT**j, and chains i of -sum_v p(v) log q(v), with p the
    target's at token i+1+j. Chains begin in the prompts as well: what the target would have said
    there is known, and there is the more to learn from.
    """
    hidden = target.config.hidden_size
    wanted = batch.inside[:, 2:]
    with torch.no_grad():
        last = target.normed(batch.hidden[:, 1:-1, -hidden:])
        index = torch.full(wanted.shape, -1, device=wanted.device)
        index[wanted] = torch.arange(int(wanted.sum()), device=wanted.device)
        probabilities = torch.softmax((last[wanted] @ rows.T).float(), dim=-1).to(rows.dtype)
    total = torch.zeros((), device=rows.device)
    weights = 0.0
    for step, state in enumerate(_steps(head, target, batch, steps)):
        # Chains that begin at i; the token predicted is i+2+step, the target's state i+1+step.
        reached = index[:, step:]
        usable = wanted[:, : reached.shape[1]] & (reached >= 0)
        with torch.autocast(target.device, torch.bfloat16):
            logits = head.norm(state[:, : reached.shape[1]][usable]) @ rows.T
        log_q = torch.log_softmax(logits.float(), dim=-1)
        loss = -(probabilities[reached[usable]].float() * log_q).sum(-1).mean()
        total = total + DISCOUNT**step * loss
        weights += DISCOUNT**step
    return total / weights


def _steps(head: EagleHead, target: Target, batch: Batch, steps: int) -> Iterator[Tensor]:
    """The head's state after each draft step, of the chain that begins at each position.

    The tokens drafted before are the text's: a chain that left the text is over anyway.
    Shape: (sequences, length - 2, hidden).
    """
    length = batch.tokens.shape[1] - 2
    embeds = torch.nn.functional.embedding(batch.tokens, target.embedding)
    chain = Chain()
    with torch.autocast(target.device, torch.bfloat16):
        state = head.fc(batch.hidden[:, :length])
        for step in range(steps):
            ahead = embeds[:, 1 + step : 1 + step + length]
            ahead = torch.nn.functional.pad(ahead, (0, 0, 0, length - ahead.shape[1]))
            state = head.step(ahead, state, chain)
            yield state


def head_matches(
    head: EagleHead, ids: Tensor, target: Target, sequences: Sequence[Sequence_], steps: int
) -> Iterator[tuple[str, list[list[bool]]]]:
    """For `expected_acceptance`: where each draft could begin, which of its tokens are right."""
    rows = target.output[ids]
    with torch.inference_mode():
        for one in sequences:
            batch = batch_of([one], target.device)
            first = len(one.tokens) - one.answer - 1
            last = len(one.tokens) - 1 - steps
            columns = []
            for step, state in enumerate(_steps(head, target, batch, steps)):
                with torch.autocast(target.device, torch.bfloat16):
                    best = ids[(head.norm(state[0, first:last]) @ rows.T).argmax(-1).cpu()]
                columns.append(best.cpu() == one.tokens[first + 2 + step : last + 2 + step])
            yield one.category, torch.stack(columns, dim=1).tolist()


def head_config(job: Job, target: Target, head: EagleHead, layers: Sequence[int]) -> dict[str, Any]:
    """As vLLM reads it."""
    shape = head.shape
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.head_dim,
        "num_hidden_layers": 1,
        "hidden_act": "silu",
        "rms_norm_eps": shape.eps,
        "rope_parameters": {"rope_theta": shape.theta, "rope_type": "default"},
        "max_position_embeddings": int(target.config.max_position_embeddings),
        "vocab_size": len(target.embedding),
        "draft_vocab_size": job.draft_vocabulary,
        "num_aux_hidden_states": len(layers),
        "eagle_aux_hidden_state_layer_ids": list(layers),
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "dtype": "bfloat16",
        "bos_token_id": target.config.bos_token_id,
        "eos_token_id": target.config.eos_token_id,
    }


def head_tensors(head: EagleHead, ids: Tensor) -> dict[str, Tensor]:
    """What is shipped: without the output matrix, whose rows are the target's."""
    tensors = {
        name: value.detach().to("cpu", torch.bfloat16).contiguous()
        for name, value in head.state_dict().items()
    }
    return {**tensors, "d2t": ids - torch.arange(len(ids))}
