"""From an experiment to its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from orchestrator.plan import arms, points, preflight
from orchestrator.plan.deployment import WHAT_IF, Deployment, DeploymentPair, Speculation
from orchestrator.plan.estimate import Speed, assumed_speed, estimate
from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from orchestrator.plan.notices import general_notices, unchecked
from orchestrator.plan.plan import Estimate, Notice, Plan, SkippedCell
from orchestrator.plan.prompts import derived_seed, prompt_starts
from orchestrator.plan.search import search_plan
from orchestrator.plan.stock import prompt_stock
from orchestrator.plan.trial import Cell, LoadPoint, Protocol, Trial, TrialKind
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.search import PERFORMANCE

_NOTHING_KNOWN = ModelFacts()


def make_plan(
    experiment: Experiment,
    *,
    prompt_sets: Mapping[str, PromptSetFacts],
    models: Mapping[str, ModelFacts] | None = None,
    cluster: ClusterFacts = ClusterFacts(),  # noqa: B008 -- frozen
    trace_hash: str | None = None,
    speed: Speed | None = None,
) -> Plan:
    """Every trial of the experiment, in the order in which engines start least often.

    `prompt_sets` by workload name; `models` by the name that the file gives a target or draft;
    `speed` where one was measured, otherwise one is assumed from the model's size.
    Raises: KeyError when the facts of a workload's prompts are missing.
    """
    models = models or {}
    target = models.get(experiment.target or "", _NOTHING_KNOWN)
    loads = points.load_points(experiment, trace_hash=trace_hash)
    engine, notices = arms.engine_arguments(
        experiment,
        most_in_flight=points.most_in_flight(experiment, loads),
        prompt_sets=prompt_sets,
        cluster=cluster,
    )
    baseline = arms.baseline(experiment, engine)
    protocol = points.protocol(experiment, arms.strategy(experiment, cluster))
    builder = _Builder(experiment, prompt_sets, baseline, protocol, loads)
    no_devices = preflight.devices_missing(experiment, cluster)
    drafts: dict[str, ModelFacts] = {}
    for speculation in arms.speculations(experiment):
        draft = models.get(speculation.draft_model or "", _NOTHING_KNOWN)
        if speculation.draft_model:
            drafts[speculation.draft_model] = draft
        impossible = no_devices or preflight.speculation_impossible(
            speculation, target=target, draft=draft
        )
        deployment = arms.speculative(experiment, engine, speculation)
        builder.add(speculation, deployment, impossible, target)
    trials, control = builder.finish()
    deployments = _distinct(trials)
    notices += builder.notices
    notices += general_notices(
        experiment,
        ways_to_speculate=max(0, len(deployments) - 2),
        prompt_sets=prompt_sets,
    )
    if PERFORMANCE in experiment.suites:  # suites bring prompts of their own
        notices += prompt_stock(trials, prompt_sets)
    notices += unchecked(
        experiment, target=target, drafts=drafts, prompt_sets=prompt_sets, cluster=cluster
    )
    search, unknown = search_plan(experiment, trials)
    notices += unknown
    return Plan(
        name=experiment.name,
        trials=trials,
        prompt_starts=prompt_starts(trials),
        skipped=tuple(builder.skipped),
        notices=tuple(sorted(notices, key=lambda notice: _SEVERITIES.index(notice.severity))),
        deployments=deployments,
        estimate=_estimate(experiment, trials, deployments, prompt_sets, target, cluster, speed),
        control=control,
        seed=experiment.seed,
        simulated=experiment.simulated,
        search=search,
    )


_LARGEST = (
    "the largest load that does not queue has most tokens a block, so it bounds a false "
    "difference in speed most tightly; batches that are put together differently are also what "
    "makes equal engines answer differently"
)
_MIDDLE = "the middle rate, since the ends may be idle or overloaded"

_SEVERITIES = ("error", "warning", "note")


class _Builder:
    """Collects trials pair by pair, and what is left out with its reason."""

    def __init__(
        self,
        experiment: Experiment,
        prompt_sets: Mapping[str, PromptSetFacts],
        baseline: Deployment,
        protocol: Protocol,
        loads: list[tuple[int, LoadPoint]],
    ) -> None:
        self.experiment, self.prompt_sets, self.loads = experiment, prompt_sets, loads
        self.baseline, self.protocol = baseline, protocol
        self.trials: list[Trial] = []
        self.skipped: list[SkippedCell] = []
        self.notices: list[Notice] = []
        self._pairs: set[str] = set()
        self._workloads = {workload.name: workload for workload in experiment.workloads}

    def add(
        self,
        speculation: Speculation,
        deployment: Deployment,
        impossible: preflight.Reason | None,
        target: ModelFacts,
    ) -> None:
        """All cells of one speculative deployment."""
        cells = points.cells(self.experiment, speculation, self.loads, self.prompt_sets)
        pair = DeploymentPair(self.baseline, deployment)
        key = pair.key
        if key in self._pairs:
            reason = f"{speculation.label()} is in the file twice: measured once"
            self.skipped += [SkippedCell(cell, "duplicate", reason) for cell in cells]
            return
        self._pairs.add(key)
        reasons = {
            name: impossible or self._workload_reason(name, speculation, target)
            for name in self._workloads
        }
        seen: set[Cell] = set()
        for cell in cells:
            found = reasons[cell.workload.name] or preflight.supposed_in_vain(self.experiment, cell)
            if cell in seen:
                found = ("duplicate", "the same point is in the file twice: measured once")
            seen.add(cell)
            if found is None:
                kind: TrialKind = "what_if" if cell.method == WHAT_IF else "comparison"
                self.trials.append(self._trial(kind, pair, key, cell))
            else:
                self.skipped.append(SkippedCell(cell, *found))

    def _workload_reason(
        self, name: str, speculation: Speculation, target: ModelFacts
    ) -> preflight.Reason | None:
        workload, facts = self._workloads[name], self.prompt_sets[name]
        return preflight.cell_pointless(speculation, workload, facts) or preflight.context_exceeded(
            workload,
            facts,
            max_model_len=self.experiment.engine.get("max_model_len"),
            target=target,
        )

    def finish(self) -> tuple[tuple[Trial, ...], str]:
        """The control, then the trials; and why the control is where it is."""
        max_num_seqs = self.experiment.engine.get("max_num_seqs")
        for load in dict.fromkeys(load for _, load in self.loads):
            notice = preflight.queueing(load, max_num_seqs)
            if notice is not None:
                self.notices.append(notice)
        if not self.trials:
            rules = Counter(skipped.rule for skipped in self.skipped)
            why = ", ".join(f"{rule} ({count})" for rule, count in rules.most_common())
            self.notices.append(
                Notice("error", "nothing_to_measure", f"every cell is left out: {why}")
            )
            return (), "no trials, no control"
        control, why = self._control()
        return (control, *self.trials), why

    def _control(self) -> tuple[Trial, str]:
        """Baseline against a relaunched baseline, where a false difference would show best."""
        max_num_seqs = self.baseline.engine.get("max_num_seqs")
        kept = dict.fromkeys(
            (trial.cell.workload, trial.cell.sampling, trial.cell.batch_size, trial.cell.load)
            for trial in self.trials
        )
        first = next(iter(kept))[0]
        here = [point for point in kept if point[0] == first]
        coldest = min(point[1].temperature for point in here)
        here = [point for point in here if point[1].temperature == coldest]

        within = [
            point
            for point in here
            if max_num_seqs is None or (point[3].concurrency or 0) <= max_num_seqs
        ]
        ladder = sorted(
            within or here, key=lambda point: point[3].concurrency or point[3].rate_rps or 0.0
        )
        if ladder[0][3].mode == "closed":
            rung, because = ladder[-1], _LARGEST
        else:
            rung, because = ladder[len(ladder) // 2], _MIDDLE
        workload, sampling, batch_size, load = rung
        cell = Cell(points.NO_METHOD, None, 0, batch_size, sampling, workload, load)
        pair = DeploymentPair(self.baseline, arms.relaunched(self.baseline))
        attached = self.experiment.attach is not None
        again = "the same server again" if attached else "a relaunched baseline"
        why = (
            f"baseline against {again}, {workload.name}, {load.label()}, "
            f"T={coldest:g}: {because}, and the lowest temperature makes outputs comparable. It "
            "runs first: if it finds a difference, the rest need not be measured"
        )
        return self._trial("aa_control", pair, pair.key, cell), why

    def _trial(self, kind: TrialKind, pair: DeploymentPair, key: str, cell: Cell) -> Trial:
        # A cell's repr is its content (numbers and text only), and ten times as fast as JSON.
        seed = derived_seed(self.experiment.seed, kind, key, cell)
        return Trial(kind=kind, pair=pair, cell=cell, protocol=self.protocol, seed=seed)


def _distinct(trials: tuple[Trial, ...]) -> tuple[Deployment, ...]:
    """The engines to start, in the order of first use."""
    pairs = {id(trial.pair): trial.pair for trial in trials}
    found: dict[str, Deployment] = {}
    for pair in pairs.values():
        for deployment in (pair.baseline, pair.speculative):
            found.setdefault(deployment.key, deployment)
    return tuple(found.values())


def _estimate(
    experiment: Experiment,
    trials: tuple[Trial, ...],
    deployments: tuple[Deployment, ...],
    prompt_sets: Mapping[str, PromptSetFacts],
    target: ModelFacts,
    cluster: ClusterFacts,
    speed: Speed | None,
) -> Estimate:
    gpus = arms.gpus_per_replica(experiment, cluster)
    separate = arms.strategy(experiment, cluster) == "separate"
    devices = 1.0 if gpus == 0 else (gpus or 1.0) * (2 if separate else 1)
    at_once = 1
    if gpus and cluster.gpus is not None:
        at_once = int(cluster.gpus // devices)
    if (found := arms.layout(experiment, cluster)) is not None:
        at_once = found.at_once
    at_once = max(1, min(at_once, len({id(trial.pair) for trial in trials})))
    return estimate(
        trials,
        engine_starts=0 if experiment.attach is not None else len(deployments),
        speed=speed or assumed_speed(target, gpus=gpus),
        prompt_tokens={name: facts.mean_tokens for name, facts in prompt_sets.items()},
        devices_per_pair=devices,
        device="host" if gpus == 0 else "GPU",
        pairs_at_once=at_once,
    )
