"""A draft that does not exist: the target's own recorded answers, with errors and at a price.

vLLM's `custom_class` proposer. What is proposed is what the target said before to the same prompt;
of its tokens as many are made wrong as the acceptance asks for, and a draft takes as long as it is
supposed to. The target verifies as it verifies any draft, so the output is its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PROPOSER = "orchestrator.serving.what_if.WhatIfProposer"
SETTINGS = "orchestrator_what_if"
"""Key of vLLM's `additional_config` under which the supposition reaches the proposer."""
_KEPT_MAX = 4096
Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Continuation:
    """A prompt as the engine's tokens, and what the target answered."""

    prompt: Ids
    answer: Ids


class WhatIfProposer:
    """The draft tokens of every request of a step.

    Formula: token j of a draft is the recorded one with probability `acceptance`, otherwise another
        one, which the target cannot choose. Decided once per place in the answer, so that a place
        that is drafted twice fares the same, and so does the same answer in another run.
    Unit: `draft_cost_s` in seconds per token of a draft's length, once a step for all requests.
    """

    def __init__(
        self,
        vllm_config: Any,
        *,
        clock: Callable[[], float] = time.perf_counter,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        settings: Mapping[str, Any] = vllm_config.additional_config[SETTINGS]
        self._acceptance = float(settings["acceptance"])
        self._cost_s = float(settings["draft_cost_s"])
        self._length = int(vllm_config.speculative_config.num_speculative_tokens)
        self._limit = int(vllm_config.model_config.max_model_len)
        self._vocabulary = int(vllm_config.model_config.get_vocab_size())
        self._clock, self._wait = clock, wait or self._until
        self._known: dict[bytes, Continuation] = {}
        self._lengths: dict[int, int] = {}
        self._rows: dict[int, Continuation] = {}

    def learn(self, recorded: Iterable[tuple[Sequence[int], Sequence[int]]]) -> int:
        """Adds (prompt, answer) pairs; the oldest go when there are too many. Returns how many."""
        for prompt, answer in recorded:
            ids = np.asarray(prompt, dtype=np.int64)
            key = ids.tobytes()
            if key not in self._known:
                self._lengths[len(ids)] = self._lengths.get(len(ids), 0) + 1
            self._known[key] = Continuation(ids, np.asarray(answer, dtype=np.int64))
        while len(self._known) > _KEPT_MAX:
            oldest = self._known.pop(next(iter(self._known)))
            self._lengths[len(oldest.prompt)] -= 1
            if not self._lengths[len(oldest.prompt)]:
                del self._lengths[len(oldest.prompt)]
        return len(self._known)

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: Any,
        token_ids_cpu: Any,
        slot_mappings: Any = None,
    ) -> list[list[int]]:
        """Per request; empty for one that is not decoding, and where nothing was recorded."""
        until = self._clock() + self._cost_s * self._length
        drafts: list[list[int]] = []
        for row, sampled in enumerate(sampled_token_ids):
            count = int(num_tokens_no_spec[row])
            room = min(self._length, self._limit - count - 1)
            if not len(sampled) or room < 1:
                drafts.append([])
                continue
            drafts.append(self._draft(row, token_ids_cpu[row, :count], room))
        if any(drafts) and self._cost_s > 0:
            self._wait(until)
        return drafts

    def _draft(self, row: int, history: Any, room: int) -> list[int]:
        found = self._continuation(row, history)
        if found is None:
            return []
        at = len(history) - len(found.prompt)
        right = found.answer[at : at + room]
        return [
            int(token) if self._accepts(found, at + index) else self._wrong(int(token))
            for index, token in enumerate(right)
        ]

    def _continuation(self, row: int, history: Any) -> Continuation | None:
        """Of the request in this row: rows are given to other requests when one ends."""
        last = self._rows.get(row)
        if last is not None and _begins(history, last.prompt):
            return last
        for length in self._lengths:
            if length < len(history):
                key = np.asarray(history[:length], dtype=np.int64).tobytes()
                if key in self._known:
                    self._rows[row] = self._known[key]
                    return self._rows[row]
        return None

    def _accepts(self, found: Continuation, place: int) -> bool:
        return _uniform(found.prompt, place) < self._acceptance

    def _wrong(self, token: int) -> int:
        return (token + 1) % self._vocabulary

    def _until(self, moment: float) -> None:
        """Busy, as a draft would be."""
        while self._clock() < moment:
            pass


def _begins(history: Any, prompt: Ids) -> bool:
    return len(history) > len(prompt) and bool(np.array_equal(history[: len(prompt)], prompt))


_M1, _M2, _M3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = (1 << 64) - 1


def _uniform(prompt: Ids, place: int) -> float:
    """In [0, 1), from the prompt and the place alone. Source: SplitMix64 (Steele et al., 2014)."""
    value = (int(prompt.sum()) * len(prompt) + (place + 1) * _M1) & _WORD
    value = ((value ^ (value >> 30)) * _M2) & _WORD
    value = ((value ^ (value >> 27)) * _M3) & _WORD
    return float(((value ^ (value >> 31)) >> 11) / (1 << 53))


class WhatIfExtension:
    """Mixed into vLLM's worker; its methods are reached with `collective_rpc`."""

    model_runner: Any

    def orchestrator_learn(self, recorded: Sequence[tuple[Sequence[int], Sequence[int]]]) -> int:
        """Hands recorded answers to the proposer; returns how many it has."""
        drafter = getattr(self.model_runner, "drafter", None)
        if not isinstance(drafter, WhatIfProposer):
            raise TypeError(
                f"the engine's proposer must be {PROPOSER}, got {type(drafter).__name__}"
            )
        return drafter.learn(recorded)
