"""From an experiment file to a plan with everything it needs: models, prompts, facts.

Shared by `plan` (which goes no further) and `sweep`. Imports neither ray nor vllm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.errors import Fault, ModelUnavailable, SpecError, WorkloadError
from orchestrator.models.facts import read_model_facts
from orchestrator.models.resolve import ResolvedModel, resolve
from orchestrator.models.tokens import count_tokens
from orchestrator.plan.block import Prompt, Timeouts
from orchestrator.plan.expand import make_plan
from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from orchestrator.plan.fresh import FreshRequests, fresh_requests
from orchestrator.plan.plan import Plan
from orchestrator.plan.prompts import TrialBlocks, block_plans, planned_offsets
from orchestrator.plan.prompts import prompts_needed as prompts_needed_by
from orchestrator.plan.trial import Trial
from orchestrator.ports import Job
from orchestrator.run.suites.catalogue import SUITES
from orchestrator.run.suites.job import SuiteJob, compared_pairs
from orchestrator.run.suites.soak import soak_settings
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.load import OpenLoad
from orchestrator.spec.read import read_experiment
from orchestrator.spec.search import PERFORMANCE
from orchestrator.spec.workload import Workload
from orchestrator.workloads.length import InputLength, control_length
from orchestrator.workloads.load import load_prompts
from orchestrator.workloads.prompt_set import CountTokens, PromptSet, with_token_counts
from orchestrator.workloads.traces import load_trace


@dataclass(frozen=True)
class Prepared:
    """An experiment, ready to run."""

    file: Path
    experiment: Experiment
    plan: Plan
    prompts: Mapping[str, PromptSet]
    """By workload name, after selection and length control."""
    models: Mapping[str, ResolvedModel]
    """By the name that the file gives a target or draft; absent where it could not be found."""
    missing_models: tuple[str, ...]
    """What to do about the models that are not here."""
    trace_s: tuple[float, ...] | None

    @property
    def measures(self) -> bool:
        """Whether trials are run, or suites only."""
        return PERFORMANCE in self.experiment.suites

    def suite_jobs(self) -> list[SuiteJob]:
        """The suites that are asked for on every pair that is compared: all of one pair together,
        so that its engines are started once."""
        entries = [name for name in self.experiment.suites if name in SUITES]
        return [
            SuiteJob(name, pair, self.plan.seed, self._suite_settings(name))
            for pair in compared_pairs(self.plan.trials)
            for name in entries
        ]

    def _suite_settings(self, name: str) -> Mapping[str, Any]:
        if name != "soak":
            return SUITES[name].make().settings
        workloads = {name: prompts.hash for name, prompts in self.prompts.items()}
        return soak_settings(self.experiment.soak, workloads)

    def soak_requests(self) -> FreshRequests | None:
        """What a soak sends; None where none is asked for. Raises: SpecError."""
        if "soak" not in self.experiment.suites:
            return None
        refs = {trial.cell.workload.name: trial.cell.workload for trial in self.plan.trials}
        soak = self.experiment.soak
        longest = self.experiment.engine.get("max_model_len")
        try:
            return fresh_requests(
                [(ref, self.prompts[name].prompts) for name, ref in refs.items()],
                mix=soak.mix,
                seed=self.plan.seed,
                temperature=soak.temperature,
                max_model_len=longest if isinstance(longest, int) else None,
            )
        except ValueError as error:
            rule, hint = "must leave prompts to be sent", str(error)
            raise SpecError([Fault(str(self.file), None, "soak", rule, hint=hint)]) from error

    def timeouts(self) -> Timeouts:
        limits = self.experiment.measure.timeouts
        return Timeouts(limits.connect_s, limits.first_token_s, limits.stall_s, limits.total_s)

    def jobs(self) -> list[Job]:
        """The plan's trials with their blocks, in order; none where only suites are asked for."""
        if not self.measures:
            return []
        starts = zip(self.plan.trials, self.plan.prompt_starts, strict=True)
        return [Job(trial, self._blocks(trial, start)) for trial, start in starts]

    def further(self, trial: Trial, added: Sequence[Trial]) -> Job | str:
        """`trial` on prompts that its engines have not met, after those of `added`; or why not."""
        used: Counter[str] = Counter()
        for other in (*self.plan.trials, *added):
            if other.cell.workload.prompts_hash == trial.cell.workload.prompts_hash and (
                other.pair.baseline == trial.pair.baseline
            ):
                used[other.pair.key] += prompts_needed_by(other)
        own = trial.pair.key
        begin = used[own]
        if own not in {planned.pair.key for planned in self.plan.trials}:
            # A schedule, put together from what other engines did: after the prompts of them all.
            begin += max((count for key, count in used.items() if key != own), default=0)
        count = len(self.prompts[trial.cell.workload.name])
        needed = prompts_needed_by(trial)
        if begin + needed > count and not trial.cell.workload.allow_reuse:
            return (
                f"that takes {needed} prompts not used before, and {trial.cell.workload.name} has "
                f"{max(0, count - begin)} left of {count}"
            )
        return Job(trial, self._blocks(trial, begin))

    def _blocks(self, trial: Trial, start: int) -> TrialBlocks:
        return block_plans(
            trial,
            self.prompts[trial.cell.workload.name].prompts,
            start=start,
            order_seed=self.plan.seed,
            offsets=planned_offsets(self.trace_s),
            timeouts=self.timeouts(),
        )


def prepare(
    file: Path,
    *,
    offline: bool,
    cluster: ClusterFacts | None = None,
    suites: tuple[str, ...] | None = None,
) -> Prepared:
    """Read, resolve, load, count and plan. A model that is missing is reported, not raised.

    `suites` stand for those of the file.

    Raises: SpecError, WorkloadError with every fault found.
    """
    cluster = cluster or this_machine()
    experiment = _with_native_dtype(read_experiment(file), cluster)
    if suites is not None:
        experiment = experiment.model_copy(update={"suites": suites})
    models, missing = _models(experiment, offline=offline)
    target = models.get(experiment.target or "")
    counting = _counting(target)
    try:
        prompts = _prompts(experiment, file.resolve().parent, counting, offline=offline)
    except WorkloadError as error:
        raise WorkloadError("\n".join([*missing, str(error)])) from None
    trace_s, trace_hash = _trace(experiment, file.resolve().parent)
    plan = make_plan(
        experiment,
        prompt_sets={name: PromptSetFacts.of(s.hash, s.prompts) for name, s in prompts.items()},
        models={name: _facts(model, compared=len(models) > 1) for name, model in models.items()},
        cluster=cluster,
        trace_hash=trace_hash,
    )
    if experiment.simulated:
        _check_simulated(plan, str(file))
    return Prepared(file, experiment, plan, prompts, models, missing, trace_s)


NATIVE = "native"
"""`engine.dtype` that is fast where the engines run: the model's own, unless a CPU emulates it."""


def _with_native_dtype(experiment: Experiment, cluster: ClusterFacts) -> Experiment:
    """Trials say what they ran with, so the word is replaced before anything is planned."""
    if experiment.engine.get("dtype") != NATIVE:
        return experiment
    from orchestrator.adapters.local.host_facts import native_bfloat16

    dtype = "auto" if cluster.gpus else "bfloat16" if native_bfloat16() else "float32"
    return experiment.model_copy(update={"engine": {**experiment.engine, "dtype": dtype}})


def _check_simulated(plan: Plan, file: str) -> None:
    """Raises: SpecError for parameters that the simulated engine does not know."""
    from orchestrator.adapters.simulated.configuration import configure

    found: dict[str, Fault] = {}
    for deployment in plan.deployments:
        try:
            configure(deployment)
        except SpecError as error:
            found |= {str(fault): replace(fault, file=file) for fault in error.faults}
    if found:
        raise SpecError(list(found.values()))


def this_machine() -> ClusterFacts:
    """GPUs and cores of this host, without importing ray."""
    from orchestrator.adapters.node_facts import this_node

    here = this_node()
    return ClusterFacts(gpus=here.gpus, cpus=here.cpus, nodes=(here,))


def _models(
    experiment: Experiment, *, offline: bool
) -> tuple[dict[str, ResolvedModel], tuple[str, ...]]:
    if experiment.simulated or experiment.attach is not None:
        return {}, ()
    drafts = [point["draft"] for entry in experiment.sweep.speculation for point in entry.points()]
    found, missing = {}, []
    for name in dict.fromkeys([experiment.target, *drafts]):
        if name is None:
            continue
        try:
            found[name] = resolve(name, offline=offline)
        except ModelUnavailable as error:
            missing.append(str(error))
    return found, tuple(missing)


def _facts(model: ResolvedModel, *, compared: bool) -> ModelFacts:
    """Reading a vocabulary takes a while; it is needed only where a draft is held against it."""
    folder = model.local_path
    return ModelFacts() if folder is None else read_model_facts(folder, with_vocabulary=compared)


def _counting(target: ResolvedModel | None) -> CountTokens | None:
    if target is None or target.local_path is None:
        return None
    if not (target.local_path / "tokenizer.json").exists():
        return None
    return count_tokens(target.local_path)


class TokenizerMissing(Exception):
    """Prompts are to be counted in tokens, and nothing here can count."""


def _how_to_get(target: str | None) -> str:
    if target is None:
        return ": attached servers have none; leave input_tokens out"
    if "/" in target:
        return f"; get it with: hf download {target}"
    return f"; get it with: python -m orchestrator models prepare {target}"


def _prompts(
    experiment: Experiment, base: Path, counting: CountTokens | None, *, offline: bool
) -> dict[str, PromptSet]:
    found, faults = {}, []
    for workload in experiment.workloads:
        try:
            found[workload.name] = _workload_prompts(workload, base, counting, offline=offline)
        except TokenizerMissing:
            faults.append(
                f"workload {workload.name}: input_tokens: needs the tokenizer of "
                f"{experiment.target} to count with, and it is not here"
                + _how_to_get(experiment.target)
            )
        except WorkloadError as error:
            faults.append(f"workload {workload.name}: {error}")
        except SpecError as error:
            faults.append(str(error))
    if faults:
        raise WorkloadError("\n".join(faults))
    return found


def _workload_prompts(
    workload: Workload, base: Path, counting: CountTokens | None, *, offline: bool
) -> PromptSet:
    prompts = load_prompts(
        workload.prompts,
        format=workload.format,
        base=base,
        categories=workload.categories or (),
        offline=offline,
    )
    if workload.system is not None:
        prompts = _with_system(prompts, workload.system)
    bounds = workload.input_tokens
    length = InputLength(min=bounds.min, max=bounds.max, exactly=bounds.exactly, by=bounds.by)
    limited = any(bound is not None for bound in (bounds.min, bounds.max, bounds.exactly))
    if counting is None:
        if limited:
            raise TokenizerMissing
        return prompts
    prompts = with_token_counts(prompts, counting)
    return control_length(prompts, length, counting) if limited else prompts


def _with_system(prompts: PromptSet, system: str) -> PromptSet:
    def spoken(prompt: Prompt) -> Prompt:
        return replace(prompt, system=system)

    return PromptSet.of(
        prompts.name,
        prompts.source,
        map(spoken, prompts.prompts),
        treatment=prompts.treatment,
        notes=prompts.notes,
    )


def _trace(experiment: Experiment, base: Path) -> tuple[tuple[float, ...] | None, str | None]:
    load = experiment.load
    if not isinstance(load, OpenLoad) or load.trace is None:
        return None, None
    trace = load_trace(load.trace, base=base)
    return trace.offsets_s, trace.hash
