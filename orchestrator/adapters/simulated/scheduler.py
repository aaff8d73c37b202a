"""Who runs in the next step: slots, prompt budget, cache room, preemption."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from orchestrator.adapters.simulated.configuration import Limits
from orchestrator.adapters.simulated.job import Job


class Scheduler:
    """First come first served, as vLLM does it: decoding sequences first, then prompts."""

    def __init__(self, limits: Limits, kv_capacity_tokens: int) -> None:
        self._limits = limits
        self.kv_capacity_tokens = kv_capacity_tokens
        self.kv_used = 0
        """Tokens in the cache, over all running requests."""
        self.waiting: deque[Job] = deque()
        self.prefilling: list[Job] = []
        self.decoding: list[Job] = []

    @property
    def has_work(self) -> bool:
        return bool(self.decoding or self.prefilling or self.waiting)

    @property
    def running(self) -> int:
        return len(self.decoding) + len(self.prefilling)

    @property
    def batch_is_settled(self) -> bool:
        """Nobody reads a prompt and nobody can be admitted until someone ends."""
        if self.prefilling:
            return False
        return not self.waiting or len(self.decoding) >= self._limits.max_num_seqs

    def longest(self) -> int:
        """Prompt and answer together must not be longer than this, or they never fit."""
        return min(self._limits.max_model_len, self.kv_capacity_tokens)

    def prompt_fits(self, prompt_tokens: int) -> bool:
        """Whether a prompt can be read at all: unsplit, it must fit one step's budget."""
        limits = self._limits
        return limits.enable_chunked_prefill or prompt_tokens <= limits.max_num_batched_tokens

    def preempt(self, length: int) -> int:
        """Frees the latest arrivals' cache until the rest has room for a step; how many."""
        count = 0
        while self.running > 1 and self._after_step(length) > self.kv_capacity_tokens:
            # The last to come is the first to go: what it loses is the cheapest to compute again.
            job = (self.prefilling or self.decoding).pop()
            self.release(job)
            job.preemptions += 1
            self.waiting.appendleft(job)
            count += 1
        return count

    def prompts(self, length: int) -> list[tuple[Job, int]]:
        """Admits requests; the prompts of the next step and how many of their tokens go in."""
        if not self.waiting and not self.prefilling:
            return []
        return list(self._prompts(length))

    def _prompts(self, length: int) -> Iterator[tuple[Job, int]]:
        limits = self._limits
        budget = limits.max_num_batched_tokens - len(self.decoding) * (1 + length)
        room = self.kv_capacity_tokens - self._after_step(length)
        for job in list(self.prefilling):
            chunk = min(job.to_compute, budget, room)
            if chunk > 0:
                budget, room = budget - chunk, room - chunk
                yield job, chunk
        while self.waiting and self.running < limits.max_num_seqs and budget > 0:
            needed = self.waiting[0].to_compute
            # A prompt is admitted only where all of it fits: half-read and waiting for room, it
            # would hold the cache that others need to finish.
            if needed > room or not (limits.enable_chunked_prefill or needed <= budget):
                return
            job = self.waiting.popleft()
            self.prefilling.append(job)
            chunk = min(needed, budget)
            budget, room = budget - chunk, room - needed
            yield job, chunk

    def release(self, job: Job) -> None:
        self.kv_used -= job.computed
        job.computed = 0

    def remove(self, job: Job) -> None:
        """Takes a request out, wherever it stands. Unknown: nothing."""
        for queue in (self.decoding, self.prefilling, self.waiting):
            if job in queue:
                queue.remove(job)
                self.release(job)
                return

    def clear(self) -> list[Job]:
        everyone = [*self.decoding, *self.prefilling, *self.waiting]
        self.decoding, self.prefilling, self.kv_used = [], [], 0
        self.waiting.clear()
        return everyone

    def _after_step(self, length: int) -> int:
        """Cache used after a step in which every draft is accepted."""
        return self.kv_used + len(self.decoding) * (1 + length)
