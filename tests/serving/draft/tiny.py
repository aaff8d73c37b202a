"""A target of two layers that answers with a fixed cycle of tokens, and what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VOCABULARY = 48
CYCLE = tuple(range(3, 15))


def tiny_target(folder: Path) -> Any:
    """A Llama that was taught the cycle in a moment, saved as any target is."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
            max_position_embeddings=128, bos_token_id=1, eos_token_id=2,
        )
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    text = torch.tensor([[CYCLE[(i + j) % len(CYCLE)] for j in range(40)] for i in range(12)])
    for _ in range(60):
        loss = model(input_ids=text, labels=text).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.to(torch.bfloat16).save_pretrained(folder)
    return model


def write_shard(path: Path, model: Any, rows: list[tuple[str, bool, list[int], int]]) -> None:
    """(category, held out, tokens, length of the answer), with the states of both layers."""
    import torch
    from safetensors.torch import save_file

    tokens, hidden, facts = [], [], []
    for category, held_out, ids, answer in rows:
        states: list[Any] = []

        def note(_: Any, __: Any, out: Any, states: list[Any] = states) -> None:
            states.append(out[0] if isinstance(out, tuple) else out)

        hooks = [layer.register_forward_hook(note) for layer in model.model.layers]
        with torch.inference_mode():
            model.model(torch.tensor([ids]))
        for hook in hooks:
            hook.remove()
        hidden.append(torch.cat([state.reshape(len(ids), -1) for state in states], dim=-1))
        tokens += ids
        facts.append(
            {"id": "x", "category": category, "held_out": held_out, "temperature": 0.0,
             "length": len(ids), "answer": answer}
        )  # fmt: skip
    save_file(
        {"tokens": torch.tensor(tokens, dtype=torch.int32),
         "hidden": torch.cat(hidden).to(torch.bfloat16)},
        str(path),
        metadata={"sequences": json.dumps(facts)},
    )  # fmt: skip
