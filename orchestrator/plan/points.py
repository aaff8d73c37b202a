"""The points of the grid that do not start an engine: workload x load x temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from orchestrator.plan.deployment import Speculation
from orchestrator.plan.facts import PromptSetFacts
from orchestrator.plan.placing import Strategy
from orchestrator.plan.trial import Cell, LoadPoint, Protocol, Sampling, WorkloadRef
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.load import ClosedLoad
from orchestrator.spec.workload import SOURCES, Workload

NO_METHOD = "none"
"""The method of a cell in which no arm speculates."""


def load_points(experiment: Experiment, *, trace_hash: str | None) -> list[tuple[int, LoadPoint]]:
    """(batch size, load) along the ladder.

    The batch size is what the engine decodes together at most: the requests in flight, or its cap
    where the load offers more.
    """
    sweep, load = experiment.sweep, experiment.load
    explicit = experiment.engine.get("max_num_seqs")
    cap = (
        explicit if explicit is not None else (max(sweep.batch_size) if sweep.batch_size else None)
    )
    if isinstance(load, ClosedLoad):
        if load.concurrency is None:
            sizes = sweep.batch_size or (1,)
            return [(size, LoadPoint("closed", concurrency=size)) for size in sizes]
        return [
            (min(in_flight, cap or in_flight), LoadPoint("closed", concurrency=in_flight))
            for in_flight in load.concurrency
        ]
    size = sweep.batch_size[0] if sweep.batch_size else int(explicit or 0)
    return [
        (
            size,
            LoadPoint(
                "open",
                rate_rps=rate,
                arrivals=load.arrivals,
                burstiness=load.burstiness,
                trace_hash=trace_hash if load.arrivals == "trace" else None,
                time_scale=load.time_scale,
            ),
        )
        for rate in (load.rate_rps or (None,))
    ]


def most_in_flight(experiment: Experiment, loads: list[tuple[int, LoadPoint]]) -> int:
    """The engine's cap, unless the file sets one: the largest batch size or concurrency."""
    if experiment.sweep.batch_size:
        return max(experiment.sweep.batch_size)
    return max(max(size, load.concurrency or 0) for size, load in loads)


def samplings(experiment: Experiment) -> list[Sampling]:
    fields = experiment.sampling
    return [
        Sampling(
            temperature=float(temperature),
            top_p=fields.top_p,
            top_k=fields.top_k,
            min_p=fields.min_p,
            seeded=fields.seeded,
        )
        for temperature in experiment.sweep.temperature
    ]


def workload_ref(workload: Workload, facts: PromptSetFacts) -> WorkloadRef:
    """A file is named without its folder: its hash says what it holds, wherever it lies."""
    bounds = workload.input_tokens
    prompts = workload.prompts
    return WorkloadRef(
        name=workload.name,
        prompts=prompts if prompts.startswith(SOURCES) else f"file:{PurePath(prompts).name}",
        prompts_hash=facts.hash,
        output_tokens=workload.output_tokens,
        fixed_length=workload.fixed_length,
        endpoint=workload.endpoint,
        input_tokens=(bounds.exactly or bounds.min, bounds.exactly or bounds.max),
        history=workload.history,
        allow_reuse=workload.allow_reuse,
    )


def protocol(experiment: Experiment, placement: Strategy) -> Protocol:
    measure = experiment.measure
    return Protocol(
        pairs_min=measure.pairs.min,
        pairs_max=measure.pairs.max,
        requests_per_block=experiment.requests_per_block,
        warmup_requests=measure.warmup_requests,
        confidence=measure.confidence,
        margin=measure.margin,
        metric=measure.metric,
        trial_seconds=measure.trial_seconds,
        looks="once" if measure.looks == "once" else "every",
        placement=placement,
        block_requests_min=measure.block_requests_min,
    )


def cells(
    experiment: Experiment,
    speculation: Speculation | None,
    loads: list[tuple[int, LoadPoint]],
    prompt_sets: Mapping[str, PromptSetFacts],
) -> Iterator[Cell]:
    """Every point at which one speculative deployment is compared: the workload changes slowest."""
    sampled = samplings(experiment)
    for workload in experiment.workloads:
        ref = workload_ref(workload, prompt_sets[workload.name])
        for batch_size, load in loads:
            for sampling in sampled:
                yield Cell(
                    method=speculation.method if speculation else NO_METHOD,
                    draft=speculation.draft if speculation else None,
                    speculation_length=speculation.speculation_length if speculation else 0,
                    batch_size=batch_size,
                    sampling=sampling,
                    workload=ref,
                    load=load,
                )
