"""What is true of a simulated server under open load: no closed form, so a long simulation.

Arrivals are the same for both arms (common random numbers), so that their ratio converges fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.adapters.simulated.configuration import EngineConfiguration
from orchestrator.adapters.simulated.drive import Arrival, drive
from orchestrator.adapters.simulated.engine import SimulatedEngine, seeded
from orchestrator.adapters.simulated.job import Job

Metric = Literal["speedup_tpot", "speedup_e2e"]


@dataclass(frozen=True, slots=True)
class RequestShape:
    prompt_tokens: int
    output_tokens: int
    category: str = ""
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Means over the completed requests of one run; arrays hold one value a request."""

    duration_s: float
    ttft_s: np.ndarray
    tpot_s: np.ndarray
    e2e_s: np.ndarray
    output_tokens: int
    planned: int

    @property
    def output_tok_per_s(self) -> float:
        return self.output_tokens / self.duration_s

    def attainment(self, ttft_s: float = math.inf, tpot_s: float = math.inf) -> float:
        """Requests that meet both bounds / requests planned."""
        return float(((self.ttft_s <= ttft_s) & (self.tpot_s <= tpot_s)).sum()) / self.planned


def run_closed(
    configuration: EngineConfiguration,
    shape: RequestShape,
    *,
    concurrency: int,
    requests: int,
    seed: int = 0,
) -> LoadResult:
    """`concurrency` in flight until `requests` have been sent."""
    engine = SimulatedEngine(configuration, seeded(configuration, f"truth {seed}"))
    jobs = [_job(i, shape) for i in range(requests)]
    rest = iter(jobs[concurrency:])

    def next_one(job: Job) -> list[Arrival]:
        following = next(rest, None)
        return [] if following is None else [(engine.now_s, following)]

    drive(engine, [(0.0, job) for job in jobs[:concurrency]], next_one)
    return _result(jobs, engine.now_s)


def run_open(
    configuration: EngineConfiguration,
    shape: RequestShape,
    *,
    rate_rps: float,
    requests: int,
    seed: int = 0,
) -> LoadResult:
    """Poisson arrivals at `rate_rps`; the same seed gives the same arrivals to any engine.

    The gaps are scaled to have exactly the mean 1/rate: what is offered is then what is named.
    """
    gaps = np.random.default_rng(seed).exponential(1.0, requests)
    gaps *= 1 / (rate_rps * gaps.mean())
    jobs = [_job(i, shape) for i in range(requests)]
    engine = SimulatedEngine(configuration, seeded(configuration, f"truth {seed}"))
    drive(engine, zip(np.cumsum(gaps).tolist(), jobs, strict=True))
    return _result(jobs, engine.now_s)


def speedup_at_rate(
    baseline: EngineConfiguration,
    speculative: EngineConfiguration,
    shape: RequestShape,
    *,
    rate_rps: float,
    requests: int = 2000,
    seed: int = 0,
    metric: Metric = "speedup_tpot",
) -> float:
    """Ratio of the arms' means at the same arrivals; > 1 = speculation pays."""
    a = run_open(baseline, shape, rate_rps=rate_rps, requests=requests, seed=seed)
    b = run_open(speculative, shape, rate_rps=rate_rps, requests=requests, seed=seed)
    if metric == "speedup_tpot":
        return float(np.mean(a.tpot_s) / np.mean(b.tpot_s))
    return float(np.mean(a.e2e_s) / np.mean(b.e2e_s))


def break_even_rps(
    baseline: EngineConfiguration,
    speculative: EngineConfiguration,
    shape: RequestShape,
    *,
    low_rps: float,
    high_rps: float,
    requests: int = 2000,
    seed: int = 0,
    metric: Metric = "speedup_tpot",
    tolerance: float = 0.01,
) -> float | None:
    """The load at which the speedup crosses 1 from above, by bisection on the rate (log scale).

    Undefined: None when it does not cross between `low_rps` and `high_rps`.
    """

    def speedup(rate_rps: float) -> float:
        return speedup_at_rate(
            baseline,
            speculative,
            shape,
            rate_rps=rate_rps,
            requests=requests,
            seed=seed,
            metric=metric,
        )

    if speedup(low_rps) <= 1 or speedup(high_rps) >= 1:
        return None
    while high_rps / low_rps > 1 + tolerance:
        middle = math.sqrt(low_rps * high_rps)
        if speedup(middle) > 1:
            low_rps = middle
        else:
            high_rps = middle
    return math.sqrt(low_rps * high_rps)


def knee_rps(
    configuration: EngineConfiguration,
    shape: RequestShape,
    *,
    rates_rps: Sequence[float],
    ttft_s: float = math.inf,
    tpot_s: float = math.inf,
    attainment: float = 0.99,
    requests: int = 2000,
    seed: int = 0,
) -> float | None:
    """Highest rung with attainment ≥ target and achieved ≥ 0.95 of offered.

    Undefined: None when no rung qualifies.
    """
    knee = None
    for rate_rps in sorted(rates_rps):
        seen = run_open(configuration, shape, rate_rps=rate_rps, requests=requests, seed=seed)
        achieved = len(seen.e2e_s) / seen.duration_s >= 0.95 * rate_rps
        if achieved and seen.attainment(ttft_s, tpot_s) >= attainment:
            knee = rate_rps
    return knee


def _job(index: int, shape: RequestShape) -> Job:
    return Job(
        str(index),
        shape.prompt_tokens,
        shape.output_tokens,
        category=shape.category,
        temperature=shape.temperature,
    )


def _result(jobs: Sequence[Job], end_s: float) -> LoadResult:
    done = [job for job in jobs if job.error is None and job.chunk_s]
    first = np.array([job.chunk_s[0] for job in done])
    last = np.array([job.chunk_s[-1] for job in done])
    sent = np.array([job.arrival_s for job in done])
    tokens = np.array([job.generated for job in done])
    gaps = np.where(tokens > 1, tokens - 1, np.nan)
    return LoadResult(
        duration_s=end_s,
        ttft_s=first - sent,
        tpot_s=(last - first) / gaps,
        e2e_s=last - sent,
        output_tokens=int(tokens.sum()),
        planned=len(jobs),
    )
