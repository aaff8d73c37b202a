"""A sweep as a whole: its trials, the A/A control beside them, and what may be called of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.analyse.control import AAControl, aa_control
from orchestrator.analyse.look_plan import look_plan
from orchestrator.analyse.pairs import ratio_series
from orchestrator.decide.derived import trial_result
from orchestrator.decide.efficiency import Efficiency, efficiency
from orchestrator.decide.multiplicity import best_candidate, corrected
from orchestrator.decide.searched import SearchResult, search_result, steered
from orchestrator.decide.suite_results import JudgedSuite, read_suites
from orchestrator.decide.trial_result import TrialResult, slo_bounds
from orchestrator.decide.verdict import Decision
from orchestrator.run.suites.record import SuiteResult
from orchestrator.store import SweepFolder


@dataclass(frozen=True)
class SweepResult:
    """What the report, the table and MLflow are made of."""

    manifest: Mapping[str, Any]
    trials: tuple[TrialResult, ...]
    """Comparisons, in the plan's order; of a search those that were begun."""
    controls: tuple[TrialResult, ...]
    confirmations: tuple[TrialResult, ...]
    decisions: Mapping[str, Decision]
    """By trial id: the headline of every comparison, corrected over the cells of the sweep."""
    what_ifs: tuple[TrialResult, ...] = ()
    """Of drafts that do not exist: beside the comparisons, never among them."""
    suites: tuple[SuiteResult, ...] = ()
    """What the suites found, one a suite and deployment pair; empty where none was run."""
    suite_runs: tuple[JudgedSuite, ...] = ()
    """The same with how each was run and ended, failures included. `whole_sweep` fills both:
    judging takes a while."""
    reused: Mapping[str, str] = field(default_factory=dict)
    """The sweep that measured a trial, by trial id, where it was another one."""
    search: SearchResult | None = None
    """None where the whole grid was walked."""
    efficiency: Efficiency | None = None
    """Where the machines' time went; None where no devices were ours."""

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def simulated(self) -> bool:
        return bool(self.manifest.get("simulated")) or any(t.simulated for t in self.every)

    def suites_named(self) -> dict[str, tuple[JudgedSuite, ...]]:
        """The suites by name, in the order in which they were asked for."""
        names = dict.fromkeys(suite.job.suite for suite in self.suite_runs)
        return {n: tuple(s for s in self.suite_runs if s.job.suite == n) for n in names}

    @property
    def only_suites(self) -> bool:
        """No trial was asked for, only suites: there is no speedup to speak of."""
        return not self.every and bool(self.suite_runs)

    @property
    def every(self) -> tuple[TrialResult, ...]:
        return (*self.controls, *self.trials, *self.what_ifs, *self.confirmations)

    @property
    def best(self) -> TrialResult | None:
        """The cell to confirm: the best lower end among those called faster."""
        chosen = best_candidate(self.decisions)
        return self._comparison(chosen)

    @property
    def chosen(self) -> tuple[TrialResult, ...]:
        """The cells that are chosen among many, and so have to be confirmed: the best of those
        called faster, and the one that a search found, where that is another."""
        searched = None if self.search is None else self._comparison(self.search.best)
        both = (self.best, searched)
        found = {trial.trial.id: trial for trial in both if trial is not None}
        return tuple(found.values())

    def _comparison(self, trial_id: str | None) -> TrialResult | None:
        return next((trial for trial in self.trials if trial.trial.id == trial_id), None)

    def decision(self, result: TrialResult) -> Decision:
        """The decision to show: corrected for comparisons; the others stand alone."""
        return self.decisions.get(result.trial.id, result.headline)

    def control(self) -> AAControl | None:
        """The A/A control's summary, or None while there is none."""
        for result in self.controls:
            protocol = result.trial.protocol
            series = ratio_series(result.pairs, protocol.metric)
            used = series.log_ratios[: protocol.pairs_max]
            return aa_control(
                used,
                look_plan(protocol, len(used)),
                metric=protocol.metric,
                margin=protocol.margin,
            )
        return None


Known = dict[str, TrialResult]
"""Of trials that finished, by id: what was read of them stays true while one process runs."""


def read_sweep(folder: SweepFolder, known: Known | None = None) -> SweepResult:
    """Everything about a sweep, from its folder alone. `known` is used, and added to: whoever
    reads a sweep several times hands in the same. Raises: StoreError."""
    manifest = folder.manifest()
    slo = slo_bounds(manifest["experiment"].get("slo") or {})
    kept = {} if known is None else known
    found = []
    for trial in folder.trials():
        result = kept.get(trial.id) or trial_result(trial, folder.trial(trial.id), slo)
        found.append(result)
        if result.outcome is not None and result.outcome.status == "finished":
            kept[trial.id] = result
    origins = {result.trial.id: folder.trial(result.trial.id).reused() for result in found}
    return replace(
        sweep_result(manifest, found, search_record=folder.search()),
        reused={name: str(one["sweep"]) for name, one in origins.items() if one is not None},
        efficiency=efficiency(folder.runs()),
    )


def whole_sweep(folder: SweepFolder, known: Known | None = None) -> SweepResult:
    """The trials, and what the suites found. Raises: StoreError."""
    runs = read_suites(folder)
    found = tuple(run.result for run in runs if run.result is not None)
    return replace(read_sweep(folder, known), suites=found, suite_runs=runs)


def sweep_result(
    manifest: Mapping[str, Any],
    found: Sequence[TrialResult],
    search_record: Mapping[str, Any] | None = None,
) -> SweepResult:
    planned = tuple(result for result in found if result.trial.kind == "comparison")
    comparisons = planned
    if steered(manifest):
        comparisons = tuple(r for r in planned if r.outcome is not None or r.pairs)
    with_pairs = {result.trial.id: result.headline for result in comparisons if result.pairs}
    confidence = comparisons[0].trial.protocol.confidence if comparisons else 0.95
    return SweepResult(
        manifest=manifest,
        trials=comparisons,
        controls=tuple(result for result in found if result.trial.kind == "aa_control"),
        confirmations=tuple(result for result in found if result.trial.kind == "confirmation"),
        what_ifs=tuple(result for result in found if result.trial.kind == "what_if"),
        decisions=corrected(with_pairs, confidence=confidence) if with_pairs else {},
        search=search_result(
            manifest,
            comparisons,
            not_proposed=len(planned) - len(comparisons),
            record=search_record,
        ),
    )
