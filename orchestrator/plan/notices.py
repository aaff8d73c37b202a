"""Warnings about an experiment as a whole, and the rules that could not be applied."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from orchestrator.plan.arms import ATTACHED
from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from orchestrator.plan.plan import Notice
from orchestrator.spec.attach import Attach
from orchestrator.spec.engine import SIMULATED
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.workload import Workload


def general_notices(
    experiment: Experiment,
    *,
    ways_to_speculate: int,
    prompt_sets: Mapping[str, PromptSetFacts],
) -> Iterator[Notice]:
    """Warnings about the experiment as a whole."""
    caching = experiment.engine.get("enable_prefix_caching") is not False
    if caching and ways_to_speculate > 1 and not experiment.simulated:
        yield Notice(
            "warning",
            "baseline_meets_prompts_again",
            f"one baseline is compared with {ways_to_speculate} speculative engines on the same "
            "prompts, and its prefix cache remembers them: from the second comparison on its first "
            "token comes too early",
            "set engine.enable_prefix_caching: false",
        )
    yield from _overlapping_sets(experiment.workloads, prompt_sets)
    for workload in experiment.workloads:
        if workload.prompts.startswith("random:"):
            yield Notice(
                "warning",
                "random_tokens",
                f"workload {workload.name} asks random tokens: acceptance on them says nothing "
                "about real text",
            )
    yield from _misspelt_arguments(experiment)
    if experiment.attach is not None:
        yield from _attached(experiment.attach)


def _attached(servers: Attach) -> Iterator[Notice]:
    """What cannot be had, or be ruled out, when the servers are somebody else's."""
    yield Notice(
        "note",
        "attached_control",
        "the A/A control asks the baseline server twice, it does not relaunch it: it shows the "
        "noise between blocks, not the difference between two starts of one engine; if the server "
        "caches prefixes, the second block of a control pair finds its prompts cached "
        "(in turn: A B, B A)",
        "start both servers without prefix caching",
    )
    addresses = [urlsplit(url) for url in (servers.baseline, servers.speculative)]
    if servers.baseline == servers.speculative:
        yield Notice(
            "warning", "attached_same", "both arms are the same server: nothing can be found"
        )
    elif addresses[0].hostname == addresses[1].hostname:
        yield Notice(
            "note",
            "attached_together",
            f"both servers are at {addresses[0].hostname}: they are measured in turn, and the one "
            "that waits keeps its memory; on one device each has less of it than it would alone",
        )
    else:
        yield Notice(
            "warning",
            "attached_apart",
            f"the servers are at {addresses[0].hostname} and {addresses[1].hostname}: a "
            "difference between these machines, or the ways to them, counts as one between the "
            "arms, and the control does not show it",
            "measure a second time with the servers exchanged",
        )
    if not servers.tls_verify:
        yield Notice(
            "warning", "tls_unverified", "the servers' certificates are not looked at: tls_verify"
        )


def _overlapping_sets(
    workloads: Sequence[Workload], prompt_sets: Mapping[str, PromptSetFacts]
) -> Iterator[Notice]:
    for index, second in enumerate(workloads):
        for first in workloads[:index]:
            same_hash = prompt_sets[first.name].hash == prompt_sets[second.name].hash
            if first.prompts == second.prompts and not same_hash and not _apart(first, second):
                yield Notice(
                    "warning",
                    "overlapping_sets",
                    f"workloads {first.name} and {second.name} both draw from {first.prompts}: "
                    "an engine may meet a prompt twice",
                    "give them categories or bounds on input_tokens that do not overlap",
                )


def _apart(first: Workload, second: Workload) -> bool:
    if first.categories and second.categories:
        return not set(first.categories) & set(second.categories)
    one, other = first.input_tokens, second.input_tokens
    if one.by != "selection" or other.by != "selection":
        return False
    (low, high), (low2, high2) = (
        (bounds.exactly or bounds.min or 0, bounds.exactly or bounds.max or 10**12)
        for bounds in (one, other)
    )
    return high < low2 or high2 < low


# Arguments that experiments often carry. A name close to one of them is probably a slip; a name
# close to none is passed on, since engines have several hundred and gain more.
_OFTEN_GIVEN = (
    "attention_backend",
    "block_size",
    "compilation_config",
    "cpu_offload_gb",
    "disable_log_stats",
    "distributed_executor_backend",
    "dtype",
    "enable_chunked_prefill",
    "enable_expert_parallel",
    "enable_prefix_caching",
    "enforce_eager",
    "generation_config",
    "gpu_memory_utilization",
    "hf_overrides",
    "kv_cache_dtype",
    "kv_cache_memory_bytes",
    "load_format",
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
    "per_request_spec_decode_metrics",
    "pipeline_parallel_size",
    "quantization",
    "revision",
    "seed",
    "swap_space",
    "tensor_parallel_size",
    "tokenizer",
    "tokenizer_revision",
    "trust_remote_code",
    "worker_extension_cls",
    "async_scheduling",
    "scheduling_policy",
    "data_parallel_size",
)


def _misspelt_arguments(experiment: Experiment) -> Iterator[Notice]:
    for name in experiment.engine:
        if name in _OFTEN_GIVEN or name in (ATTACHED, SIMULATED):
            continue
        close = difflib.get_close_matches(name, _OFTEN_GIVEN, n=1, cutoff=0.85)
        if close and close[0].replace("_revision", "") != name:
            yield Notice(
                "warning",
                "engine_argument",
                f"engine.{name} is passed on to vLLM as it is",
                f"did you mean '{close[0]}'?",
            )


def unchecked(
    experiment: Experiment,
    *,
    target: ModelFacts,
    drafts: Mapping[str, ModelFacts],
    prompt_sets: Mapping[str, PromptSetFacts],
    cluster: ClusterFacts,
) -> Iterator[Notice]:
    """The rules that could not be applied: not checked is not passed."""
    uncounted = [name for name, facts in prompt_sets.items() if facts.longest_tokens is None]
    if uncounted:
        yield Notice(
            "note",
            "unchecked",
            f"prompt lengths of {', '.join(uncounted)} are not known here: "
            "whether they fit the context is not checked",
        )
    elif target.max_position_embeddings is None and "max_model_len" not in experiment.engine:
        yield Notice(
            "note", "unchecked", "the target's context is not known here: it is not checked"
        )
    sizes_unknown = [
        name for name, facts in drafts.items() if None in (facts.vocab_size, target.vocab_size)
    ]
    if sizes_unknown:
        yield Notice(
            "note",
            "unchecked",
            f"whether the vocabulary of {', '.join(sizes_unknown)} is the target's is not checked: "
            "a config.json is not here",
        )
    if cluster.gpus is None and not experiment.simulated and experiment.attach is None:
        yield Notice("note", "unchecked", "the cluster's devices are not known: not checked")
