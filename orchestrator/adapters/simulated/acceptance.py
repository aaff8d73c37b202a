"""How many drafted tokens are accepted, drawn and counted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from orchestrator.adapters.simulated.configuration import EngineConfiguration
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.noise import Noise


class Acceptance:
    """Draws accepted counts; keeps vLLM's four counters, cumulative since the engine started."""

    def __init__(self, configuration: EngineConfiguration, noise: Noise) -> None:
        self._full = configuration.speculation_length
        self._model, self._drifts = configuration.model, configuration.drifts
        self._changes = self._drifts.acceptance_changes
        self._noise = noise
        self._uniforms: list[float] = []
        self.drafts = 0
        self.draft_tokens = 0
        self.accepted_tokens = 0
        self._exactly = [0] * (self._full + 1)
        """How many drafts had exactly i tokens accepted."""

    @property
    def accepted_per_position(self) -> tuple[int, ...]:
        """Accepted tokens at position 1..K: drafts with at least that many accepted."""
        totals, above = [], 0
        for count in reversed(self._exactly[1:]):
            above += count
            totals.append(above)
        return tuple(reversed(totals))

    def prepare(self, job: Job, age_s: float) -> None:
        """Sets a request's thresholds for its category and temperature at the engine's age."""
        rates = self._model.conditional_acceptance(self._full, job.category, job.temperature)
        factor = self._drifts.acceptance_factor(job.category, age_s)
        reached, at_least = 1.0, []
        for rate in rates:
            reached *= min(1.0, rate * factor)
            at_least.append(reached)
        job.thresholds = at_least[::-1]

    def draw(self, jobs: Sequence[Job], length: int, age_s: float) -> list[int]:
        """Accepted drafts of each request, of `length` proposed.

        One uniform u a draft: at least i are accepted where u < P(at least i), so the number of
        thresholds above u has exactly the distribution of the conditional rates.
        """
        if self._changes:
            for job in jobs:
                self.prepare(job, age_s)
        if len(self._uniforms) < len(jobs):
            self._uniforms = self._noise.uniforms(len(jobs))
        uniform, full = self._uniforms.pop, self._full
        accepted = [full - bisect_right(job.thresholds, uniform()) for job in jobs]
        if length < full:
            accepted = [min(length, count) for count in accepted]
        exactly = self._exactly
        for count in accepted:
            exactly[count] += 1
        self.drafts += len(accepted)
        self.draft_tokens += length * len(accepted)
        self.accepted_tokens += sum(accepted)
        return accepted
