"""Which prompts go into which block.

A prompt is used once per pair of deployments: engines remember (prefix cache, suffix tree), and a
prompt met before answers faster. Both arms of a pair get the same block.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.plan.arms import ATTACHED
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt, Timeouts
from orchestrator.plan.deployment import DeploymentPair
from orchestrator.plan.trial import LoadPoint, Trial

Offsets = Callable[[LoadPoint, int, int], Sequence[float]]
"""(load, number of requests, seed) -> seconds after the block's start, ascending."""


def planned_offsets(trace_s: Sequence[float] | None = None) -> Offsets:
    """Send times of an open load; `trace_s` are the recorded arrivals of `arrivals: trace`."""

    def of(load: LoadPoint, count: int, seed: int) -> tuple[float, ...]:
        import numpy as np  # here, so that planning alone does not wait for it

        from orchestrator.plan.arrivals import offsets

        scaled = None if trace_s is None else [time * load.time_scale for time in trace_s]
        times = offsets(load, count, np.random.default_rng(seed), trace_s=scaled)
        return tuple(time for time in times if time is not None)

    return of


WARMUP_TOKENS = 4
"""Answers of the warm-up are short: it is there to compile and allocate, not to be measured."""
WARMUP = -1
"""The pair index that seeds the warm-up."""


def requests_in_block(trial: Trial) -> int:
    """Formula: closed load: max(requests_per_block x requests in flight, block_requests_min);
    open load: requests_per_block.
    """
    load, protocol = trial.cell.load, trial.protocol
    if load.mode == "open":
        return protocol.requests_per_block
    return max(protocol.requests_per_block * (load.concurrency or 1), protocol.block_requests_min)


def requests_in_warmup(trial: Trial) -> int:
    """Formula: warmup_requests x requests in flight; open load: x min(batch size, block)."""
    load = trial.cell.load
    if load.mode == "closed":
        return trial.protocol.warmup_requests * (load.concurrency or 1)
    together = min(trial.cell.batch_size, trial.protocol.requests_per_block)
    return trial.protocol.warmup_requests * together


def prompts_needed(trial: Trial) -> int:
    """Formula: warm-up + pairs_max x block; both arms use the same ones."""
    return requests_in_warmup(trial) + trial.protocol.pairs_max * requests_in_block(trial)


def prompt_user(pair: DeploymentPair) -> str:
    """Names the engines among which a prompt is used once.

    The pair. Attached servers go on from one pair to the next and cannot be told to forget: there
    it is the baseline, which the control and the comparison have in common.
    """
    return pair.baseline.key if ATTACHED in pair.baseline.engine else pair.key


def prompt_starts(trials: Sequence[Trial]) -> tuple[int, ...]:
    """Where each trial's prompts begin: after those of the trials before it on the same engines.

    Counted per `prompt_user` and prompt set; past the set's end it begins again, which the planner
    allows only where the workload allows reuse.
    """
    used: dict[tuple[str, str], int] = defaultdict(int)
    keys: dict[int, str] = {}
    starts = []
    for trial in trials:
        key = keys.get(id(trial.pair))
        if key is None:  # a key is a hash: made once for the trials that share a pair
            key = keys[id(trial.pair)] = prompt_user(trial.pair)
        place = (key, trial.cell.workload.prompts_hash)
        starts.append(used[place])
        used[place] += prompts_needed(trial)
    return tuple(starts)


def shuffled(prompts: Sequence[Prompt], seed: int) -> tuple[Prompt, ...]:
    """The prompts in an order that depends on nothing but their ids and `seed`, categories mixed.

    Formula: within its category of n prompts the j-th gets the position (j + u) / n, u in (0, 1)
    drawn once per category. A stretch of w prompts out of N then holds w n / N of the category, to
    within 1 + C n / N for C categories.
    """
    by_category: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        by_category[prompt.category].append(prompt)
    placed: list[tuple[float, str, Prompt]] = []
    for category, members in by_category.items():
        members.sort(key=lambda prompt: (_draw(seed, "prompt", prompt.id), prompt.id))
        phase = (_draw(seed, "category", category) + 0.5) / 2**32
        placed += [
            ((index + phase) / len(members), category, prompt)
            for index, prompt in enumerate(members)
        ]
    placed.sort(key=lambda item: (item[0], item[1]))
    return tuple(prompt for _, _, prompt in placed)


def _draw(seed: int, *parts: object) -> int:
    """32 bits that depend on the arguments alone."""
    text = "|".join([str(seed), *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def derived_seed(seed: int, *parts: object) -> int:
    """A seed of 31 bits (every engine takes that) from a seed and what it is for."""
    return _draw(seed, *parts) >> 1


@dataclass(frozen=True)
class TrialBlocks:
    """The blocks of one trial, made when they are asked for."""

    trial: Trial
    prompts: tuple[Prompt, ...]
    """The whole set, in shuffled order."""
    start: int
    offsets: Offsets | None
    timeouts: Timeouts

    def warmup(self) -> BlockPlan:
        """Sent to each arm before the first pair; a closed load whatever the trial's is."""
        trial, count = self.trial, requests_in_warmup(self.trial)
        load = trial.cell.load
        if load.mode == "open":
            load = LoadPoint("closed", concurrency=max(1, min(trial.cell.batch_size, count)))
        return self._block(WARMUP, self.start, count, load, None)

    def pair(self, index: int) -> BlockPlan:
        """The block that both arms of pair `index` get.

        Raises: IndexError outside 0 <= index < pairs_max.
        """
        trial = self.trial
        if not 0 <= index < trial.protocol.pairs_max:
            raise IndexError(f"0 <= index < {trial.protocol.pairs_max} must hold, got {index}")
        count = requests_in_block(trial)
        first = self.start + requests_in_warmup(trial) + index * count
        load = trial.cell.load
        if load.mode == "closed":
            return self._block(index, first, count, load, None)
        if self.offsets is None:
            raise ValueError("an open load needs a function that says when requests are sent")
        seed = derived_seed(trial.seed, "arrivals", index)
        return self._block(index, first, count, load, self.offsets(load, count, seed))

    def _block(
        self, pair: int, first: int, count: int, load: LoadPoint, offsets: Sequence[float] | None
    ) -> BlockPlan:
        trial = self.trial
        workload, sampling = trial.cell.workload, trial.cell.sampling
        name = "warmup" if pair == WARMUP else f"p{pair}"
        requests = tuple(
            PlannedRequest(
                request_id=f"{trial.id}-{name}-{number}",
                prompt=self.prompts[(first + number) % len(self.prompts)],
                offset_s=None if offsets is None else float(offsets[number]),
                max_tokens=(
                    min(WARMUP_TOKENS, workload.output_tokens)
                    if pair == WARMUP
                    else workload.output_tokens
                ),
                seed=derived_seed(trial.seed, pair, number) if sampling.seeded else None,
            )
            for number in range(count)
        )
        return BlockPlan(
            requests=requests,
            load=load,
            sampling=sampling,
            endpoint=workload.endpoint,
            fixed_length=workload.fixed_length,
            history=workload.history,
            timeouts=self.timeouts,
        )


def block_plans(
    trial: Trial,
    prompts: Sequence[Prompt],
    *,
    start: int,
    order_seed: int,
    offsets: Offsets | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 -- frozen
) -> TrialBlocks:
    """The blocks of `trial`, out of its whole prompt set.

    `start` is the trial's entry of `Plan.prompt_starts` and `order_seed` the plan's seed: trials
    that share engines then share the order and no prompt.
    Raises: ValueError without prompts.
    """
    if not prompts:
        raise ValueError(f"{trial.cell.workload.name}: a trial needs at least one prompt")
    ordered = _shuffled_once(tuple(prompts), order_seed)
    return TrialBlocks(trial, ordered, start, offsets, timeouts)


@lru_cache(maxsize=16)
def _shuffled_once(prompts: tuple[Prompt, ...], seed: int) -> tuple[Prompt, ...]:
    """Trials that share a prompt set share one tuple: thousands of them then travel as one."""
    return shuffled(prompts, seed)
