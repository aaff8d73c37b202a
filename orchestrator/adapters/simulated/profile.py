"""What a simulated server costs and accepts, in arithmetic: pure values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Drafting = Literal["per_step", "per_token", "of_verify"]
"""How drafting is priced.

per_step: one term for the whole proposal, `kv·a + (K+1)·b + c` (how SpecDecode-Bench fitted EAGLE);
per_token: K forward passes in sequence, each `kv·a + batch·b + c` (a draft model);
of_verify: a share of the verifying pass (n-gram and suffix look-ups).
"""

LOOKUP_METHODS = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods that search text instead of running a model; they are priced as a share of the pass."""

Conditional = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Where one engine step goes, in seconds. `draft_s` is None when nothing was drafted."""

    draft_s: float | None
    verify_s: float
    overhead_s: float

    @property
    def total_s(self) -> float:
        return (self.draft_s or 0.0) + self.verify_s + self.overhead_s


@dataclass(frozen=True)
class SimulatedModel:
    """The profile of a simulated server: step costs, acceptance, noise and size.

    Formula: a forward pass of the target takes
    `target_kv_s · (tokens in the cache) + target_token_s · (tokens in the batch) + target_fixed_s`,
    every step adds `overhead_s`, a step that verifies drafts adds the draft (see `Drafting`) and
    `speculation_overhead_s`.
    Unit: seconds; tokens in the cache are counted before the step.
    """

    name: str
    target_kv_s: float
    target_token_s: float
    target_fixed_s: float
    overhead_s: float
    draft_kv_s: float = 0.0
    draft_token_s: float = 0.0
    draft_fixed_s: float = 0.0
    drafting: Drafting = "per_token"
    lookup_verify_fraction: float = 0.005875
    """Cost of an n-gram look-up as a share of the verifying pass. Source: SpecDecode-Bench."""
    speculation_overhead_s: float = 0.0
    acceptance: Conditional = (0.7,)
    """Probability that position i is accepted, given that i−1 was; the last one repeats."""
    acceptance_by_category: Mapping[str, Conditional] = field(default_factory=dict)
    temperature_penalty: float = 0.0
    """Acceptance is multiplied by exp(−penalty · temperature)."""
    jitter_sigma: float = 0.0
    """Log-normal noise on every step's time, independent, mean one."""
    slow_jitter_sigma: float = 0.0
    """Log-normal noise that wanders: an AR(1) process in time, mean one."""
    slow_jitter_correlation_s: float = 10.0
    kv_capacity_tokens: int = 400_000
    draft_kv_fraction: float = 0.0
    """Share of the cache that the draft takes away in the speculative arm."""
    natural_output_tokens: float = 200.0
    """Mean length of an answer when it may end by itself."""
    start_s: float = 20.0
    memory_bytes: float = 2e10

    def forward_s(self, kv_tokens: float, batched_tokens: float) -> float:
        """Time of one pass of the target over `batched_tokens`, `kv_tokens` already cached."""
        return (
            self.target_kv_s * kv_tokens
            + self.target_token_s * batched_tokens
            + self.target_fixed_s
        )

    def draft_s(
        self, kv_tokens: float, sequences: float, length: int, verify_s: float, method: str | None
    ) -> float:
        """Time to propose `length` tokens for each of `sequences`; 0 when there is none to make."""
        if length <= 0 or sequences <= 0:
            return 0.0
        if self.drafting == "of_verify" or method in LOOKUP_METHODS:
            return self.lookup_verify_fraction * verify_s
        if self.drafting == "per_step":
            tokens = float(length + 1)
            return self.draft_kv_s * kv_tokens + self.draft_token_s * tokens + self.draft_fixed_s
        one_pass = self.draft_kv_s * kv_tokens + self.draft_token_s * sequences + self.draft_fixed_s
        return length * one_pass

    def step(
        self,
        kv_tokens: float,
        decoding: float,
        length: int = 0,
        *,
        prefill_tokens: float = 0.0,
        method: str | None = None,
    ) -> StepTimes:
        """Time of one engine step before noise: `decoding` sequences, `length` drafts each."""
        verify_s = self.forward_s(kv_tokens, decoding * (1 + length) + prefill_tokens)
        drafted = length > 0 and decoding > 0
        draft_s = self.draft_s(kv_tokens, decoding, length, verify_s, method) if drafted else None
        overhead_s = self.overhead_s + (self.speculation_overhead_s if drafted else 0.0)
        return StepTimes(draft_s, verify_s, overhead_s)

    def conditional_acceptance(
        self, length: int, category: str = "", temperature: float = 0.0
    ) -> Conditional:
        """Conditional acceptance of positions 1..`length` for a category and a temperature."""
        rates = self.acceptance_by_category.get(category, self.acceptance)
        factor = math.exp(-self.temperature_penalty * temperature)
        return tuple(rates[min(i, len(rates) - 1)] * factor for i in range(length))


LLAMA_8B_H100 = SimulatedModel(
    name="llama-8b-h100",
    target_kv_s=3.92645679e-08,
    target_token_s=2.10103129e-05,
    target_fixed_s=5.88590713e-03,
    overhead_s=1.20683946e-03,
    draft_kv_s=2.37768493e-09,
    draft_token_s=8.41429603e-07,
    draft_fixed_s=2.13526175e-03,
    drafting="per_step",
    kv_capacity_tokens=450_000,
)
"""Llama-3.1-8B with EAGLE on one H100. Source: SpecDecode-Bench (arXiv 2601.11580), its simulator's
`predictor.py`: fitted at batch sizes 1 to 64, overhead in both arms, the draft as one term a step.
The cache's size is ours: 80 GB at 0.9, less 16 GB of weights, at 128 KiB a token."""

FAST = SimulatedModel(
    name="fast",
    target_kv_s=0.0,
    target_token_s=2e-5,
    target_fixed_s=1e-3,
    overhead_s=0.0,
    draft_fixed_s=1e-4,
    kv_capacity_tokens=100_000,
    start_s=0.0,
)
"""Round numbers for tests: a step takes 1 ms, a token in it 20 µs, a drafted position 100 µs."""

PROFILES: Mapping[str, SimulatedModel] = {p.name: p for p in (LLAMA_8B_H100, FAST)}
