"""Short ways to build simulated deployments, engines and blocks for these tests."""

from __future__ import annotations

from typing import Any

from orchestrator.adapters.simulated.configuration import EngineConfiguration, configure
from orchestrator.adapters.simulated.drive import drive
from orchestrator.adapters.simulated.engine import SimulatedEngine, seeded
from orchestrator.adapters.simulated.job import Job
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt, Timeouts
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.plan.trial import LoadPoint, Sampling

MILLISECOND_STEPS: dict[str, Any] = {
    "target_kv_s": 0.0,
    "target_token_s": 0.0,
    "target_fixed_s": 0.001,
    "overhead_s": 0.0,
    "draft_fixed_s": 0.0,
}
"""Every step takes 1 ms, whatever is in it: timelines can be drawn by hand."""


def deployment(
    length: int = 0,
    *,
    method: str = "draft_model",
    schedule: list[list[int]] | None = None,
    engine: dict[str, Any] | None = None,
    replica_of: str | None = None,
    **simulated: Any,
) -> Deployment:
    options = {} if schedule is None else {"num_speculative_tokens_per_batch_size": schedule}
    speculation = Speculation(method, length, "tiny-draft", options) if length else None
    return Deployment("tiny", {**(engine or {}), "simulated": simulated}, speculation, replica_of)


def configuration(length: int = 0, **how: Any) -> EngineConfiguration:
    return configure(deployment(length, **how))


def engine(length: int = 0, *, seed: str = "test", **how: Any) -> SimulatedEngine:
    made = configuration(length, **how)
    return SimulatedEngine(made, seeded(made, seed))


def run(
    running: SimulatedEngine, *jobs: Job, at_s: float = 0.0, timeouts: Timeouts | None = None
) -> None:
    """Runs jobs that all arrive at once."""
    drive(running, [(at_s, job) for job in jobs], timeouts=timeouts)


def prompt(name: str, *, tokens: int = 10, category: str = "chat", turns: int = 1) -> Prompt:
    texts = tuple(f"{name} turn {i}: say something" for i in range(turns))
    return Prompt(name, category, texts, tokens=tokens)


def block(
    requests: int,
    *,
    concurrency: int | None = None,
    offsets: list[float] | None = None,
    max_tokens: int = 16,
    first: int = 0,
    turns: int = 1,
    history: Any = "first_turn",
    fixed_length: bool = True,
    temperature: float = 0.0,
    category: str = "chat",
    tokens: int = 10,
    timeouts: Timeouts | None = None,
) -> BlockPlan:
    """A closed block of `concurrency` in flight, or an open one with these offsets."""
    closed = offsets is None
    load = LoadPoint("closed", concurrency or 1) if closed else LoadPoint("open", rate_rps=1.0)
    planned = tuple(
        PlannedRequest(
            f"r{i}",
            prompt(f"p{i}", turns=turns, category=category, tokens=tokens),
            None if offsets is None else offsets[i - first],
            max_tokens,
            i,
        )
        for i in range(first, first + requests)
    )
    sampling = Sampling(temperature)
    return BlockPlan(planned, load, sampling, "chat", fixed_length, history, timeouts or Timeouts())
