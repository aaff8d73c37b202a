"""What cannot work, or would say nothing, and why: found before an engine is started.

A rule whose facts are not known is not applied; `notices.unchecked` says which.
"""

from __future__ import annotations

from orchestrator.plan.arms import engine_parallelism, gpus_per_replica, layout, strategy
from orchestrator.plan.deployment import WHAT_IF, Speculation
from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from orchestrator.plan.plan import Notice
from orchestrator.plan.trial import Cell, LoadPoint
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.workload import Workload

Reason = tuple[str, str]
"""(rule, reason in words with the values)."""

_SHARE_TOKENS = ("draft_model", "eagle", "eagle3", "medusa")
_VLLM_LOOKUP = 5
"""vLLM's n-gram window when neither bound is given."""


def devices_missing(experiment: Experiment, cluster: ClusterFacts) -> Reason | None:
    """The pair needs more than the cluster has, or the engine more than its replica gets."""
    if experiment.attach is not None or experiment.simulated:
        return None
    placement = experiment.placement
    each, spread = gpus_per_replica(experiment, cluster), engine_parallelism(experiment.engine)
    if each and spread > each:
        return "too_many_devices", (
            f"tensor x pipeline parallel size is {spread}, "
            f"and a replica gets {each:g} GPUs (placement.gpus_per_replica)"
        )
    how = strategy(experiment, cluster)
    arms_at_once = 2 if how == "separate" else 1
    if each is not None and cluster.gpus is not None and each * arms_at_once > cluster.gpus:
        return "too_many_devices", (
            f"{arms_at_once} x {each:g} GPUs are needed (placement.strategy: {how}), "
            f"and the cluster has {cluster.gpus:g}"
        )
    loaded_at_once = 1 if how == "in_turn" else 2
    cpus = placement.cpus_per_replica
    if cpus is not None and cluster.cpus is not None and cpus * loaded_at_once > cluster.cpus:
        return "too_many_devices", (
            f"{loaded_at_once} x {cpus:g} CPUs are needed (placement.cpus_per_replica), "
            f"and the cluster has {cluster.cpus:g}"
        )
    found = layout(experiment, cluster)
    if found is not None and not found.slots:
        what = f"{each:g} GPUs" if each else "a machine without GPUs"
        return "too_many_devices", (
            f"no pair fits: {arms_at_once} x {what} of one model"
            f"{f' ({placement.accelerator})' if placement.accelerator else ''} "
            f"are needed (placement.strategy: {how}), and the nodes have "
            + (", ".join(f"{n.gpus:g} x {n.model}" for n in cluster.nodes if n.gpus) or "no GPU")
        )
    return None


def speculation_impossible(
    speculation: Speculation, *, target: ModelFacts, draft: ModelFacts
) -> Reason | None:
    """Why the speculative engine would not start, or could never have a draft accepted."""
    return (
        _vocabulary(speculation, target, draft)
        or _fixed_length(speculation, target, draft)
        or _lookup_window(speculation)
    )


def _vocabulary(speculation: Speculation, target: ModelFacts, draft: ModelFacts) -> Reason | None:
    if speculation.method not in _SHARE_TOKENS or speculation.options.get(
        "use_heterogeneous_vocab"
    ):
        return None
    sizes = (draft.vocab_size, target.vocab_size)
    # Old Medusa checkpoints do not state their vocabulary; vLLM takes the target's for all of them.
    if None not in sizes and sizes[0] != sizes[1] and speculation.method != "medusa":
        return "vocabulary_differs", (
            f"the draft {speculation.draft} has {sizes[0]} tokens and the target {sizes[1]}: "
            "a draft's tokens must mean the same to the target"
        )
    hashes = (draft.vocabulary_hash, target.vocabulary_hash)
    if None not in hashes and hashes[0] != hashes[1]:
        return "vocabulary_differs", (
            f"the draft {speculation.draft} and the target give the same ids to different tokens"
        )
    return None


def _fixed_length(speculation: Speculation, target: ModelFacts, draft: ModelFacts) -> Reason | None:
    length = speculation.speculation_length
    if speculation.method == "medusa" and draft.heads is not None and length > draft.heads:
        return "speculation_too_long", (
            f"K={length}, and the draft {speculation.draft} has {draft.heads} heads"
        )
    step = None
    if speculation.method == "mtp":
        step = (draft if speculation.draft else target).step_tokens
    elif speculation.method in ("eagle", "eagle3"):
        step = draft.step_tokens
    if step is not None and length > step and length % step:
        return "speculation_too_long", (
            f"K={length} is above the {step} tokens that one step of the head proposes, "
            "and no multiple of it"
        )
    return None


def _lookup_window(speculation: Speculation) -> Reason | None:
    if speculation.method != "ngram":
        return None
    low, high = lookup_bounds(speculation)
    if low > high:
        return "lookup_window", (
            f"prompt_lookup_min <= prompt_lookup_max must hold, got min={low}, max={high}"
        )
    return None


def lookup_bounds(speculation: Speculation) -> tuple[int, int]:
    """The n-gram window as vLLM completes it: one bound given is both, none given is 5 and 5.

    Source: vLLM 0.32, SpeculativeConfig.__post_init__.
    """
    low = speculation.options.get("prompt_lookup_min")
    high = speculation.options.get("prompt_lookup_max")
    return low or high or _VLLM_LOOKUP, high or low or _VLLM_LOOKUP


def cell_pointless(
    speculation: Speculation, workload: Workload, facts: PromptSetFacts
) -> Reason | None:
    """Why this way to speculate says nothing on this workload."""
    length, output = speculation.speculation_length, workload.output_tokens
    # Suffix decoding's K is only a ceiling: its drafts are as long as the tree has evidence for.
    if speculation.method != "suffix" and length + 1 > output:
        return "speculation_too_long", (
            f"K+1 <= output_tokens must hold, got K={length}, output_tokens={output}: "
            "one draft would be longer than the whole answer"
        )
    if speculation.method == "ngram" and facts.longest_tokens is not None:
        low, _ = lookup_bounds(speculation)
        text = facts.longest_tokens + output
        if low >= text:
            return "lookup_window", (
                f"prompt_lookup_min={low}, and the longest prompt with its answer has {text} "
                "tokens: nothing that long can occur twice"
            )
    return None


def supposed_in_vain(experiment: Experiment, cell: Cell) -> Reason | None:
    """Why a supposed draft's acceptance could not be set here."""
    if cell.method != WHAT_IF:
        return None
    if experiment.attach is not None:
        return "what_if", (
            "a supposed draft is a proposer of ours inside the engine, "
            "and a server that already runs has not got it"
        )
    if cell.sampling.temperature > 0:
        return "what_if", (
            f"temperature 0 must hold, got {cell.sampling.temperature:g}: the recorded answer is "
            "what the target will say again only if it does not sample"
        )
    if cell.workload.history == "own" and not experiment.simulated:
        return "what_if", (
            "history: first_turn or reference must hold, got own: what a later turn's prompt holds "
            "is known only when it is sent"
        )
    return None


def context_exceeded(
    workload: Workload, facts: PromptSetFacts, *, max_model_len: int | None, target: ModelFacts
) -> Reason | None:
    """The longest conversation does not fit into the engine's context."""
    limit, name = max_model_len, "max_model_len"
    if limit is None:
        limit, name = target.max_position_embeddings, "the model's max_position_embeddings"
    needed = facts.context_needed(workload.output_tokens, all_turns=workload.history == "own")
    if limit is None or needed is None or needed <= limit:
        return None
    longest = facts.longest_tokens or 0
    room = longest - (needed - limit)
    return "context_exceeded", (
        f"prompt + output <= {name} must hold, got up to {needed} (longest prompt {longest}, "
        f"output_tokens {workload.output_tokens}) > {limit}"
        + (f"; input_tokens.max: {room} would fit" if room > 0 else "")
    )


def queueing(load: LoadPoint, max_num_seqs: int | None) -> Notice | None:
    """More in flight than the engine decodes together is legal: it measures the queue as well."""
    in_flight = load.concurrency
    if in_flight is None or max_num_seqs is None or in_flight <= max_num_seqs:
        return None
    return Notice(
        "warning",
        "queueing",
        f"{in_flight} in flight is above engine.max_num_seqs={max_num_seqs}: "
        f"{in_flight - max_num_seqs} requests wait, and latency includes the wait",
    )
