"""A discrete-event model of a continuous-batching server, on virtual time.

One step is one pass of the target over everything scheduled: every decoding sequence with its
drafts, then prompts, first come first served, within the token budget. Counters have vLLM's
semantics: a draft is counted when it is verified, its accepted tokens before the answer is cut at
its length limit; the token that a finished prompt yields belongs to no draft.

Left out on purpose: block granularity of the cache, prefix caching, asynchronous scheduling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.adapters.simulated.acceptance import Acceptance
from orchestrator.adapters.simulated.configuration import EngineConfiguration
from orchestrator.adapters.simulated.faults import Incidents
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.noise import Noise
from orchestrator.adapters.simulated.scheduler import Scheduler
from orchestrator.records import RequestError


@dataclass
class Counters:
    """Cumulative since the engine started; those of speculation are in `Acceptance`."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    requests_finished: int = 0
    preemptions: int = 0
    steps: int = 0


class SimulatedEngine:
    """Holds waiting and running requests; `step` advances virtual time by one engine step."""

    def __init__(
        self, configuration: EngineConfiguration, rng: np.random.Generator, *, at_s: float = 0.0
    ) -> None:
        model, drifts = configuration.model, configuration.drifts
        self.configuration = configuration
        self.born_s = at_s
        """Clock reading at which the engine began to answer."""
        self.now_s = at_s
        self._fresh_s = at_s
        self.counters = Counters()
        self.leaked_bytes = 0.0
        self.scheduler = Scheduler(configuration.limits, configuration.kv_capacity_tokens)
        self._incidents = Incidents(configuration.faults, at_s)
        self._lengths = configuration.lengths_by_batch()
        self._noise = Noise(
            rng, model.jitter_sigma, model.slow_jitter_sigma, model.slow_jitter_correlation_s
        )
        self.acceptance = Acceptance(configuration, self._noise)
        self._decode_costs: dict[tuple[int, int], tuple[float, float]] = {}
        self._submitted = 0
        self._to_break: list[Job] = []
        self._leaks = drifts.leak_bytes_per_s != 0

    @property
    def crashed(self) -> bool:
        return self._incidents.crashed

    @property
    def crash_s(self) -> float:
        """When the planted crash strikes, on the engine's clock; infinity when none is."""
        return self._incidents.crash_s

    @property
    def hung(self) -> bool:
        return self._incidents.hung and not self._incidents.crashed

    @property
    def age_s(self) -> float:
        return self.now_s - self.born_s

    @property
    def worn_s(self) -> float:
        """For how long its drifts have gone on."""
        return self.now_s - self._fresh_s

    @property
    def memory_bytes(self) -> float:
        return self.configuration.model.memory_bytes + self.leaked_bytes

    def idle_until(self, at_s: float) -> None:
        """Moves the clock forward while nothing runs (or nothing can)."""
        if at_s > self.now_s:
            self._pass(at_s, None)
        if self.now_s >= self._incidents.first_s:
            self._incidents.struck(self.now_s)
            self._incidents.stall_before(self.now_s)

    def submit(self, job: Job) -> bool:
        """Queues a request that arrives now; False when it is refused (`job.error` says why)."""
        faults = self.configuration.faults
        job.arrival_s = self.now_s
        if self.crashed:
            job.fail(RequestError.CONNECT, "connection refused: the engine is dead", self.now_s)
            return False
        self._submitted += 1
        if self._submitted == faults.error_on_request:
            job.fail(RequestError.HTTP_STATUS, "planted internal error", self.now_s, 500)
            return False
        if refusal := self._refusal(job):
            job.fail(RequestError.HTTP_STATUS, refusal, self.now_s, 400)
            return False
        if self._submitted == faults.error_mid_stream_on_request:
            self._to_break.append(job)
        self.acceptance.prepare(job, self.worn_s)
        self.scheduler.waiting.append(job)
        return True

    def abort(self, job: Job) -> None:
        """Forgets a request whose client went away."""
        self.scheduler.remove(job)

    def flush(self) -> None:
        """Its caches are emptied; what wears it out is gone only where that was planted."""
        if self.configuration.drifts.cured_by_flush:
            self._fresh_s, self.leaked_bytes = self.now_s, 0.0

    def stop_for(self, seconds: float) -> None:
        """Stands still for so long from now on, as a stopped process does."""
        self._incidents.plant_stall(self.now_s, seconds)

    def crash(self) -> list[Job]:
        """Dies now; whoever was being served is dropped and returned."""
        self._incidents.crashed = True
        return self._drop_all()

    def step(self) -> list[Job]:
        """Runs one engine step and returns the requests that ended in it.

        Hung, or without work, nothing happens and the clock stands still. A crash ends everyone.
        """
        scheduler, incidents = self.scheduler, self._incidents
        if self.now_s >= incidents.first_s and incidents.struck(self.now_s) is not None:
            return self._drop_all() if self.crashed else []
        length = self._lengths[scheduler.running]
        self.counters.preemptions += scheduler.preempt(length)
        kv_before = scheduler.kv_used
        prompts = scheduler.prompts(length)
        if not scheduler.decoding and not prompts:
            return []
        factor = self._growth() * (1.0 if self._noise.quiet else self._noise.factor(self.now_s))
        end = self.now_s + self._duration(kv_before, length, sum(n for _, n in prompts), factor)
        if end >= incidents.first_s:
            end += incidents.stall_before(end)
            if (moment := incidents.struck(end)) is not None:
                moment = max(moment, self.now_s)
                self._pass(moment, length)
                return self._drop_all() if self.crashed else []
        self._pass(end, length)
        self.counters.steps += 1
        ended = self._decode(length) if scheduler.decoding else []
        for job, tokens in prompts:
            job.computed += tokens
            scheduler.kv_used += tokens
            if job.to_compute == 0 and self._first_token(job):
                ended.append(job)
        if self._to_break:
            self._break_streams(ended)
        return ended

    def run(self, until_s: float) -> list[Job]:
        """Steps until a request ends, the clock reaches `until_s`, or the engine is stuck.

        The last step may end after `until_s`: a step in flight is not cut short.
        """
        scheduler = self.scheduler
        while self.now_s < until_s and scheduler.has_work and not self.hung:
            if scheduler.batch_is_settled and not self._to_break:
                if ended := self._decode_only(until_s):
                    return ended
                if self.now_s >= until_s:
                    break
            steps = self.counters.steps
            if ended := self.step():
                return ended
            if self.counters.steps == steps and not self.hung:
                raise RuntimeError(f"the simulated scheduler is stuck at {self.now_s:g} s; a bug")
        return []

    def _decode_only(self, until_s: float) -> list[Job]:
        """Steps of an unchanged batch in a tight loop; returns early where `step` must decide."""
        scheduler, noise, quiet = self.scheduler, self._noise, self._noise.quiet
        sequences = len(scheduler.decoding)
        length, first_fault_s = self._lengths[sequences], self._incidents.first_s
        most = scheduler.kv_capacity_tokens - sequences * (1 + length)
        growing = self.configuration.drifts.step_growth_per_hour != 0
        fixed, slope = self._decode_cost(sequences, length)
        while self.now_s < until_s and scheduler.kv_used <= most:
            duration = fixed + slope * scheduler.kv_used
            if not quiet:
                duration *= noise.factor(self.now_s)
            if growing:
                duration *= self._growth()
            if self.now_s + duration >= first_fault_s:
                return []
            self._pass(self.now_s + duration, length)
            self.counters.steps += 1
            if ended := self._decode(length):
                return ended
        return []

    def _duration(self, kv: int, length: int, prefill_tokens: int, factor: float) -> float:
        times = self.configuration.model.step(
            kv,
            len(self.scheduler.decoding),
            length,
            prefill_tokens=prefill_tokens,
            method=self.configuration.method,
        )
        return times.total_s * factor

    def _decode_cost(self, sequences: int, length: int) -> tuple[float, float]:
        """A decoding step's time is fixed + slope · tokens in the cache, before noise."""
        cost = self._decode_costs.get((sequences, length))
        if cost is None:
            fixed = self._duration(0, length, 0, 1.0)
            slope = (self._duration(1_000_000, length, 0, 1.0) - fixed) / 1e6
            cost = self._decode_costs[sequences, length] = (fixed, slope)
        return cost

    def _growth(self) -> float:
        return max(0.0, self.configuration.drifts.step_factor(self.worn_s))

    def _decode(self, length: int) -> list[Job]:
        decoding, end = self.scheduler.decoding, self.now_s
        accepted = self.acceptance.draw(decoding, length, self.worn_s) if length else None
        ended: list[Job] = []
        generated = 0
        for index, job in enumerate(decoding):
            tokens = 1 if accepted is None else accepted[index] + 1
            left = job.max_tokens - job.generated
            if tokens >= left:
                tokens = left
                ended.append(job)
            job.generated += tokens
            job.computed += tokens
            job.chunk_s.append(end)
            job.chunk_tokens.append(tokens)
            generated += tokens
        self.scheduler.kv_used += generated
        self.counters.generation_tokens += generated
        for job in ended:
            decoding.remove(job)
            self._finish(job)
        return ended

    def _first_token(self, job: Job) -> bool:
        """A completed prompt yields one token (after a preemption: the next one); True = ended."""
        self.scheduler.prefilling.remove(job)
        if job.generated == 0:
            self.counters.prompt_tokens += job.prompt_tokens
        self.counters.generation_tokens += 1
        job.generated += 1
        job.chunk_s.append(self.now_s)
        job.chunk_tokens.append(1)
        if job.generated < job.max_tokens:
            self.scheduler.decoding.append(job)
            return False
        self._finish(job)
        return True

    def _finish(self, job: Job) -> None:
        self.scheduler.release(job)
        job.end_s = self.now_s
        self.counters.requests_finished += 1

    def _refusal(self, job: Job) -> str | None:
        total, longest = job.prompt_tokens + job.max_tokens, self.scheduler.longest()
        if job.prompt_tokens < 1 or job.max_tokens < 1:
            return f"needs a prompt and max_tokens >= 1, got {job.prompt_tokens}, {job.max_tokens}"
        if total > longest:
            return f"prompt {job.prompt_tokens} + max_tokens {job.max_tokens} exceeds {longest}"
        if not self.scheduler.prompt_fits(total - 1):
            # Not the prompt alone: after a preemption the answer so far is read again with it.
            return f"{total} tokens exceed max_num_batched_tokens without chunked prefill"
        return None

    def _pass(self, until_s: float, length: int | None) -> None:
        """Time goes by in a step of this speculation length, or idle (None)."""
        drifts = self.configuration.drifts
        if self._leaks and drifts.leaks(length):
            self.leaked_bytes += drifts.leak_bytes_per_s * (until_s - self.now_s)
        self.now_s = until_s

    def _drop_all(self) -> list[Job]:
        dropped = self.scheduler.clear()
        for job in dropped:
            job.fail(RequestError.RESET, "connection reset: the engine died", self.now_s)
        return dropped

    def _break_streams(self, ended: list[Job]) -> None:
        for job in [job for job in self._to_break if job.chunk_s]:
            self._to_break.remove(job)
            self.scheduler.remove(job)
            job.fail(RequestError.STREAM_ERROR, "planted error in mid-stream", self.now_s)
            if job not in ended:
                ended.append(job)


def seeded(configuration: EngineConfiguration, name: str) -> np.random.Generator:
    """The engine's noise: a function of the configured seed and a name, nothing else."""
    words = [configuration.seed & 0xFFFFFFFF, *name.encode()]
    return np.random.default_rng(np.random.SeedSequence(words))
