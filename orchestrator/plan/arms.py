"""The deployments of an experiment: the baseline, and one for each way to speculate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.plan.deployment import WHAT_IF, Deployment, Speculation
from orchestrator.plan.facts import ClusterFacts, PromptSetFacts
from orchestrator.plan.placing import (
    CAVEATS,
    Layout,
    Need,
    Strategy,
    lay_out,
    spreads,
    strategy_of,
    whole_devices,
)
from orchestrator.plan.plan import Notice
from orchestrator.spec.experiment import Experiment

ATTACHED = "attached"
"""Engine key of a server that already runs; its value is the address."""

_CPU_BATCHED_TOKENS = 2048
"""vLLM's own default for `max_num_batched_tokens` when it serves on a CPU."""


def speculations(experiment: Experiment) -> Iterator[Speculation]:
    """Every point of every entry, in the order of the file; the same point may come twice."""
    for entry in experiment.sweep.speculation:
        for point in entry.points():
            own = {
                name: value
                for name, value in point.items()
                if name not in ("draft", "speculation_length") and value is not None
            }
            if entry.method == WHAT_IF:
                own = {"acceptance": float(own["acceptance"]),
                       "draft_cost_s": float(own.get("draft_cost_s", 0.0))}  # fmt: skip
            yield Speculation(
                method=entry.method,
                speculation_length=point["speculation_length"],
                draft=supposed(**own) if entry.method == WHAT_IF else point["draft"],
                options={**entry.options, **own},
            )


def supposed(acceptance: float, draft_cost_s: float) -> str:
    """Stands where a draft's name would, so that nobody takes it for one.

    >>> supposed(0.7, 0.0), supposed(0.7, 0.002)
    ('supposed: accepts 0.7, free', 'supposed: accepts 0.7, 2 ms a token')
    """
    price = f"{draft_cost_s * 1e3:g} ms a token" if draft_cost_s else "free"
    return f"supposed: accepts {acceptance:g}, {price}"


def on_cpu(experiment: Experiment, cluster: ClusterFacts) -> bool:
    """True only when it is known that no GPU is used."""
    asked = experiment.placement.gpus_per_replica
    return asked == 0 or (asked is None and cluster.gpus == 0)


def gpus_per_replica(experiment: Experiment, cluster: ClusterFacts) -> float | None:
    """What one arm takes. None when neither the file nor the cluster says."""
    if experiment.placement.gpus_per_replica is not None:
        return experiment.placement.gpus_per_replica
    if cluster.gpus == 0:
        return 0.0
    if cluster.gpus is None and "tensor_parallel_size" not in experiment.engine:
        return None
    return float(engine_parallelism(experiment.engine))


def strategy(experiment: Experiment, cluster: ClusterFacts) -> Strategy:
    """How the arms share devices."""
    cpu = on_cpu(experiment, cluster)
    return strategy_of(experiment.placement.strategy, on_cpu=cpu)


def layout(experiment: Experiment, cluster: ClusterFacts) -> Layout | None:
    """Where pairs are measured; None where the cluster's nodes are not known."""
    each = gpus_per_replica(experiment, cluster)
    if not cluster.nodes or each is None:
        return None
    placement = experiment.placement
    return lay_out(
        cluster.nodes,
        Need(
            strategy=strategy(experiment, cluster),
            gpus=whole_devices(each),
            cpus=placement.cpus_per_replica,
            accelerator=placement.accelerator,
            across_nodes=spreads(experiment.engine),
        ),
    )


def engine_parallelism(engine: Mapping[str, Any]) -> int:
    """Devices that one engine spreads over."""
    return int(engine.get("tensor_parallel_size", 1)) * int(engine.get("pipeline_parallel_size", 1))


def engine_arguments(
    experiment: Experiment,
    *,
    most_in_flight: int,
    prompt_sets: Mapping[str, PromptSetFacts],
    cluster: ClusterFacts,
) -> tuple[dict[str, Any], list[Notice]]:
    """Both arms' engine arguments: the file's, and what follows from the sweep.

    `max_num_seqs` is the most requests in flight unless the file sets it, so that one engine serves
    every batch size. On a CPU, `max_num_batched_tokens` is made large enough that no prefill is
    split when requests carry seeds (see `_unsplit_prefill`).
    """
    engine = dict(experiment.engine)
    engine.setdefault("max_num_seqs", most_in_flight)
    notices: list[Notice] = []
    seeded = experiment.sampling.seeded and max(experiment.sweep.temperature) > 0
    here_on_cpu = on_cpu(experiment, cluster) and not experiment.simulated
    if seeded and here_on_cpu:
        notices += _unsplit_prefill(engine, most_in_flight, prompt_sets)
    if experiment.attach is None and not experiment.simulated:
        notices += _placed(engine, strategy(experiment, cluster), cpu=here_on_cpu)
        found = layout(experiment, cluster)
        notices += [Notice("note", "devices", text) for text in (found.notes if found else ())]
    if here_on_cpu and experiment.attach is None and max(experiment.sweep.temperature) > 0:
        notices.append(_WRONG_SAMPLING)
        if experiment.sampling.top_k is not None and experiment.sampling.top_p in (None, 1):
            notices.append(_TOP_K_ENDS_IT)
    return engine, notices


_HALF_OF_MEMORY = 0.45
"""`gpu_memory_utilization` of an arm that shares its device: half of vLLM's default."""


def _placed(engine: dict[str, Any], how: Strategy, *, cpu: bool) -> list[Notice]:
    """Adds the engine arguments that a placement asks for, and says what it means."""
    text = f"placement {how}: {CAVEATS[how]}"
    if how == "shared" and not cpu:
        engine.setdefault("gpu_memory_utilization", _HALF_OF_MEMORY)
    if how == "in_turn" and not cpu:
        engine.setdefault("enable_sleep_mode", True)
    if how == "in_turn" and (cpu or engine.get("enable_sleep_mode") is False):
        text += "; this engine cannot sleep, so it is started again for every turn, which is slow"
    return [Notice("note", "placement", text)]


_WRONG_SAMPLING = Notice(
    "warning",
    "cpu_speculative_sampling",
    "vLLM 0.32 on a CPU loses the temperature when it checks drafts at temperature > 0: nothing is "
    "accepted and the answers are wrong (docs/engine-defects.md)",
    "read those cells as what this engine does, not as what speculation would do",
)

_TOP_K_ENDS_IT = Notice(
    "warning",
    "cpu_top_k",
    "vLLM 0.32 on a CPU: a speculative engine dies of its first request with top_k and no top_p at "
    "temperature > 0 (docs/engine-defects.md)",
    "set sampling.top_p below 1 as well",
)


def _unsplit_prefill(
    engine: dict[str, Any], most_in_flight: int, prompt_sets: Mapping[str, PromptSetFacts]
) -> list[Notice]:
    """On a CPU a seeded request whose prefill is split over steps ends the engine.

    Formula: tokens needed = requests that arrive together x longest prompt, in steps of 256, and at
    least vLLM's default.
    Source: vLLM 0.32, gpu_model_runner `_bookkeeping_sync`: "CPU Generator does not use offset".
    """
    if engine.get("enable_chunked_prefill") is False:
        return []
    together = min(most_in_flight, engine["max_num_seqs"])
    rule = "seeded_chunked_prefill"
    danger = (
        "at temperature > 0 with seeds, an engine on CPU ends when a prefill is split over steps"
    )
    longest, context = _longest_prompt(prompt_sets), engine.get("max_model_len")
    known = [length for length in (longest, context) if length is not None]
    if not known:
        text = f"{danger}, and the prompts' lengths are not known"
        hint = "set engine.max_model_len, or sampling.seeded: false"
        return [Notice("warning", rule, text, hint)]
    given = engine.get("max_num_batched_tokens")
    if given is None:
        # The context before the counted length: the same file must give the same engine, and so
        # the same trial, whether or not a tokenizer was at hand to count.
        chosen = _in_steps(together * (context or known[0]))
        engine["max_num_batched_tokens"] = chosen
        text = f"{danger}: max_num_batched_tokens is set to {chosen} for both arms"
        return [Notice("note", rule, text)]
    needed = _in_steps(together * min(known))
    if given >= needed:
        return []
    text = f"{danger}: max_num_batched_tokens is {given}, and {together} prompts need {needed}"
    hint = f"set engine.max_num_batched_tokens: {needed}, or leave it out"
    return [Notice("warning", rule, text, hint)]


def _in_steps(tokens: int) -> int:
    return max(_CPU_BATCHED_TOKENS, -(-tokens // 256) * 256)


def _longest_prompt(prompt_sets: Mapping[str, PromptSetFacts]) -> int | None:
    """In tokens, with room for a chat template; None unless every set was counted."""
    lengths = [facts.longest_tokens for facts in prompt_sets.values()]
    counted = [length for length in lengths if length is not None]
    return max(counted) + 64 if counted and len(counted) == len(lengths) else None


def baseline(experiment: Experiment, engine: Mapping[str, Any]) -> Deployment:
    if experiment.attach is not None:
        return _attached(experiment, experiment.attach.baseline, None)
    return Deployment(target=str(experiment.target), engine=engine)


def speculative(
    experiment: Experiment, engine: Mapping[str, Any], speculation: Speculation
) -> Deployment:
    if experiment.attach is not None:
        return _attached(experiment, experiment.attach.speculative, speculation)
    return Deployment(target=str(experiment.target), engine=engine, speculation=speculation)


def relaunched(deployment: Deployment) -> Deployment:
    """A second process of the same configuration, for the A/A control."""
    return Deployment(
        target=deployment.target,
        engine=deployment.engine,
        speculation=deployment.speculation,
        replica_of=deployment.key,
    )


def _attached(experiment: Experiment, address: str, speculation: Speculation | None) -> Deployment:
    attach = experiment.attach
    model = (attach.model if attach else None) or experiment.target or ATTACHED
    return Deployment(target=model, engine={ATTACHED: address}, speculation=speculation)
