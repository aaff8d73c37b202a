"""An EAGLE-3 head for a Llama-type target, as vLLM computes it, in plain PyTorch.

One decoder layer. At position i it reads the target's hidden states after token i and the embedding
of token i+1, and predicts token i+2; every further draft token comes from its own output in place
of the target's states. Embedding and output matrix are the target's and stay as they are; of the
output matrix the head has the rows of the most frequent tokens only.
Source: EAGLE-3 (Li et al., 2503.01840); vLLM's `llama_eagle3.py` for names and order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

INTERMEDIATE = 16 / 9
"""Width of the head's MLP in hidden sizes: keeps it under 10 MB for a hidden size of 576."""


@dataclass(frozen=True)
class Shape:
    hidden: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    states: int
    """Layers of the target whose states are read."""
    eps: float
    theta: float


class Norm(nn.Module):  # type: ignore[misc] # torch is not followed
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.to(x.dtype)
        return functional.rms_norm(x, (x.shape[-1],), weight, self._eps)


class EagleHead(nn.Module):  # type: ignore[misc]
    """Parameters named as vLLM's loader wants them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        h, eps = shape.hidden, shape.eps
        wide, narrow = shape.heads * shape.head_dim, shape.key_value_heads * shape.head_dim
        self.fc = nn.Linear(shape.states * h, h, bias=False)
        layer = nn.Module()
        layer.input_layernorm = Norm(h, eps)
        layer.hidden_norm = Norm(h, eps)
        layer.post_attention_layernorm = Norm(h, eps)
        layer.self_attn = nn.ModuleDict(
            {
                "q_proj": nn.Linear(2 * h, wide, bias=False),
                "k_proj": nn.Linear(2 * h, narrow, bias=False),
                "v_proj": nn.Linear(2 * h, narrow, bias=False),
                "o_proj": nn.Linear(wide, h, bias=False),
            }
        )
        layer.mlp = nn.ModuleDict(
            {
                "gate_proj": nn.Linear(h, shape.intermediate, bias=False),
                "up_proj": nn.Linear(h, shape.intermediate, bias=False),
                "down_proj": nn.Linear(shape.intermediate, h, bias=False),
            }
        )
        self.layers: Any = nn.ModuleList([layer])
        self.norm = Norm(h, eps)

    def step(self, embeds: Tensor, hidden: Tensor, chain: Chain) -> Tensor:
        """One draft token for every position at once.

        Shape: embeds and hidden (batch, positions, hidden); returns the hidden state before the
        final norm, (batch, positions, hidden), which is the `hidden` of the next step.
        """
        layer = self.layers[0]
        joined = torch.cat([layer.input_layernorm(embeds), layer.hidden_norm(hidden)], dim=-1)
        hidden = hidden + self._attend(layer.self_attn, joined, chain)
        x = layer.post_attention_layernorm(hidden)
        gate = functional.silu(layer.mlp["gate_proj"](x)) * layer.mlp["up_proj"](x)
        out: Tensor = hidden + layer.mlp["down_proj"](gate)
        return out

    def _attend(self, attention: Any, x: Tensor, chain: Chain) -> Tensor:
        shape = self.shape
        batch, length, _ = x.shape

        def split(name: str, heads: int) -> Tensor:
            projected: Tensor = attention[name](x)
            return projected.view(batch, length, heads, shape.head_dim).transpose(1, 2)

        turn = rotation(length, len(chain.keys), shape, x.device)
        query = rotate(split("q_proj", shape.heads), turn)
        repeat = shape.heads // shape.key_value_heads
        key = rotate(split("k_proj", shape.key_value_heads), turn).repeat_interleave(repeat, 1)
        value = split("v_proj", shape.key_value_heads).repeat_interleave(repeat, 1)
        chain.keys.append(key)
        chain.values.append(value)
        out = chain.attend(query)
        mixed: Tensor = attention["o_proj"](out.transpose(1, 2).reshape(batch, length, -1))
        return mixed


class Chain:
    """Keys and values of the draft steps so far: one chain of draft tokens begins at each position.

    The step with number j of the chain that begins at position i sees the first step's keys of the
    positions up to i (made from the target's states), and its own chain's keys of steps 1 to j.
    """

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def attend(self, query: Tensor) -> Tensor:
        if len(self.keys) == 1:
            out: Tensor = functional.scaled_dot_product_attention(
                query, self.keys[0], self.values[0], is_causal=True
            )
            return out
        scale = 1 / math.sqrt(query.shape[-1])
        length = query.shape[-2]
        past = query @ self.keys[0].transpose(-1, -2)
        later = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        past = past.masked_fill(later, float("-inf"))
        own = torch.stack([(query * key).sum(-1) for key in self.keys[1:]], dim=-1)
        weights = torch.softmax((torch.cat([past, own], dim=-1) * scale).float(), dim=-1)
        weights = weights.to(query.dtype)
        mixed = weights[..., :length] @ self.values[0]
        for index, value in enumerate(self.values[1:]):
            mixed = mixed + weights[..., length + index, None] * value
        return mixed


def rotation(length: int, begin: int, shape: Shape, device: Any) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary angles; shape (positions, head_dim)."""
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32, device=device) / shape.head_dim
    positions = torch.arange(begin, begin + length, dtype=torch.float32, device=device)
    angles = positions[:, None] * shape.theta ** -half[None]
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = (part.to(x.dtype) for part in turn)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def from_target(config: Any, weights: dict[str, Tensor], states: int) -> EagleHead:
    """A head that begins as the target's last layer, reading its last state.

    `weights` are the target's, by their Hugging Face names. Of the MLP the strongest neurons are
    kept. What reads the embedding begins small at random.
    """
    h = int(config.hidden_size)
    heads = int(config.num_attention_heads)
    shape = Shape(
        hidden=h,
        heads=heads,
        # As many as there are heads: a small target's few let too little of the token through.
        key_value_heads=heads,
        head_dim=int(getattr(config, "head_dim", None) or h // heads),
        intermediate=min(int(config.intermediate_size), round(h * INTERMEDIATE)),
        states=states,
        eps=float(config.rms_norm_eps),
        theta=float(config.rope_parameters["rope_theta"]),
    )
    head = EagleHead(shape)
    prefix = f"model.layers.{int(config.num_hidden_layers) - 1}."
    last = {
        name.removeprefix(prefix).removesuffix(".weight"): tensor.float()
        for name, tensor in weights.items()
        if name.startswith(prefix)
    }
    repeat = shape.key_value_heads // int(config.num_key_value_heads)

    def widened(name: str) -> Tensor:
        rows = last[f"self_attn.{name}"]
        return rows.view(-1, shape.head_dim, h).repeat_interleave(repeat, 0).reshape(-1, h)

    layer = head.layers[0]
    with torch.no_grad():
        head.fc.weight.zero_()
        head.fc.weight[:, -h:] = torch.eye(h)
        for name, rows in (
            ("q_proj", last["self_attn.q_proj"]),
            ("k_proj", widened("k_proj")),
            ("v_proj", widened("v_proj")),
        ):
            target = layer.self_attn[name].weight
            target[:, h:] = rows
            target[:, :h].normal_(0.0, float(rows.std()))
        layer.self_attn["o_proj"].weight.copy_(last["self_attn.o_proj"])
        strength = (
            last["mlp.gate_proj"].norm(dim=1)
            * last["mlp.up_proj"].norm(dim=1)
            * last["mlp.down_proj"].norm(dim=0)
        )
        best = strength.topk(shape.intermediate).indices.sort().values
        layer.mlp["gate_proj"].weight.copy_(last["mlp.gate_proj"][best])
        layer.mlp["up_proj"].weight.copy_(last["mlp.up_proj"][best])
        layer.mlp["down_proj"].weight.copy_(last["mlp.down_proj"][:, best])
        layer.hidden_norm.weight.copy_(last["input_layernorm"])
        layer.post_attention_layernorm.weight.copy_(last["post_attention_layernorm"])
        head.norm.weight.copy_(weights["model.norm.weight"].float())
    return head
