"""Are there enough prompts to use each only once?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.plan.facts import PromptSetFacts
from orchestrator.plan.plan import Notice
from orchestrator.plan.prompts import (
    prompt_user,
    prompts_needed,
    requests_in_block,
    requests_in_warmup,
)
from orchestrator.plan.trial import Trial


def prompt_stock(
    trials: Sequence[Trial], prompt_sets: Mapping[str, PromptSetFacts]
) -> Iterator[Notice]:
    """One notice for every set that is too small for the pair of deployments that needs most of it.

    Formula: needed = sum over the pair's trials on the set of
    warmup_requests x in flight + pairs_max x requests_per_block x in flight.
    """
    counts = {facts.hash: facts.count for facts in prompt_sets.values()}
    users: dict[int, str] = {}
    groups: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        user = users.get(id(trial.pair))
        if user is None:  # a hash: made once for the trials that share a pair
            user = users[id(trial.pair)] = prompt_user(trial.pair)
        groups[(user, trial.cell.workload.prompts_hash)].append(trial)
    neediest: dict[str, tuple[int, list[Trial]]] = {}
    for (_, hash), group in groups.items():
        needed = sum(prompts_needed(trial) for trial in group)
        if needed > neediest.get(hash, (0, []))[0]:
            neediest[hash] = (needed, group)
    for hash, (needed, group) in neediest.items():
        if needed > counts[hash]:
            yield _too_small(needed, counts[hash], group)


def _too_small(needed: int, count: int, group: Sequence[Trial]) -> Notice:
    names = list(dict.fromkeys(trial.cell.workload.name for trial in group))
    what = (
        f"workload {' and '.join(names)} needs {needed} prompts to use each once "
        f"({len(group)} trials on one pair of engines), and the set has {count}"
    )
    if all(trial.cell.workload.allow_reuse for trial in group):
        suffix = any(trial.cell.method == "suffix" for trial in group)
        cached = group[0].pair.baseline.engine.get("enable_prefix_caching") is not False
        hint = "set engine.enable_prefix_caching: false, or they start too fast" if cached else None
        remembered = "; suffix decoding remembers the answers: it will look too good"
        return Notice(
            "warning",
            "prompts_reused",
            f"{what}: prompts are asked again (allow_reuse)" + (remembered if suffix else ""),
            hint,
        )
    per_pair = sum(requests_in_block(trial) for trial in group)
    pairs = (count - sum(requests_in_warmup(trial) for trial in group)) // per_pair
    least = max(trial.protocol.pairs_min for trial in group)
    lower = f"measure.pairs.max: {pairs}, " if pairs >= least else ""
    return Notice(
        "error",
        "prompts_too_few",
        what,
        f"{lower}fewer batch sizes or temperatures, more prompts, or allow_reuse: true",
    )
