"""Requests without end, none like another: what a soak sends. The same sequence to both arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.plan.block import PlannedRequest, Prompt
from orchestrator.plan.prompts import derived_seed, shuffled
from orchestrator.plan.trial import WorkloadRef

OPENING_CHARACTERS = 120
"""Of another prompt, in front of one that comes again."""
OPENING_TOKENS = 64
"""Room that such an opening takes, generously."""


@dataclass(frozen=True)
class FreshRequest:
    planned: PlannedRequest
    endpoint: Literal["chat", "completion"]
    fixed_length: bool


@dataclass(frozen=True)
class FreshWorkload:
    """One workload of a mix; `prompts` in the order in which they are dealt."""

    ref: WorkloadRef
    weight: float
    prompts: tuple[Prompt, ...]


@dataclass(frozen=True)
class FreshRequests:
    """Request `index` is a pure function of the index: picklable, and endless.

    The first time round, a prompt is sent as it is. After that it comes with an opening of its own:
    a number never used before, and the beginning of some other prompt; so that neither a prefix
    cache nor a tree of past answers finds the same text again. Only first turns are sent.
    """

    workloads: tuple[FreshWorkload, ...]
    seed: int
    temperature: float = 0.0

    def request(self, index: int) -> FreshRequest:
        chosen = self._workload(index)
        count = len(chosen.prompts)
        prompt, again = chosen.prompts[index % count], index // count
        if again:
            other = chosen.prompts[derived_seed(self.seed, "opening", index) % count]
            prompt = _opened(prompt, other, index, again)
        ref = chosen.ref
        planned = PlannedRequest(
            request_id=f"soak-{index}",
            prompt=prompt,
            offset_s=None,
            max_tokens=ref.output_tokens,
            seed=derived_seed(self.seed, "request", index) if self.temperature > 0 else None,
        )
        return FreshRequest(planned, ref.endpoint, ref.fixed_length)

    def _workload(self, index: int) -> FreshWorkload:
        total = sum(workload.weight for workload in self.workloads)
        left = derived_seed(self.seed, "workload", index) / 2**31 * total
        for workload in self.workloads:
            left -= workload.weight
            if left < 0:
                return workload
        return self.workloads[-1]


def fresh_requests(
    workloads: Sequence[tuple[WorkloadRef, Sequence[Prompt]]],
    *,
    mix: Mapping[str, float],
    seed: int,
    temperature: float,
    max_model_len: int | None,
) -> FreshRequests:
    """The mix over an experiment's workloads; without weights all alike.

    Prompts that would not fit the context with an opening and their answer are left out, where
    their length is known. Raises: ValueError when a workload has none left.
    """
    chosen = []
    for ref, prompts in workloads:
        weight = mix.get(ref.name, 0.0) if mix else 1.0
        if weight == 0:
            continue
        room = None if max_model_len is None else max_model_len - ref.output_tokens
        fitting = [prompt for prompt in prompts if _fits(prompt, room)]
        if not fitting:
            raise ValueError(
                f"soak: no prompt of {ref.name} fits max_model_len={max_model_len} with "
                f"{ref.output_tokens} tokens of answer and {OPENING_TOKENS} of opening; raise "
                "max_model_len, or bound input_tokens"
            )
        chosen.append(FreshWorkload(ref, weight, shuffled(fitting, seed)))
    return FreshRequests(tuple(chosen), seed, temperature)


def _fits(prompt: Prompt, room: int | None) -> bool:
    return room is None or prompt.tokens is None or prompt.tokens + OPENING_TOKENS <= room


def _opened(prompt: Prompt, other: Prompt, index: int, again: int) -> Prompt:
    opening = " ".join(other.turns[0].split())[:OPENING_CHARACTERS]
    text = f"[{index}: {opening}]\n\n{prompt.turns[0]}"
    return replace(prompt, id=f"{prompt.id}~{again}", turns=(text,), tokens=None)
