"""One deciding figure of a scenario, at one cell."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.decide.cost import cost_ratio
from orchestrator.decide.message import Message, said, spoken
from orchestrator.decide.suites import of_suite, suite_said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision, Verdict
from orchestrator.measure.summary import with_statistic
from orchestrator.spec.scenario import SPEEDUP_FIGURES, Figure


@dataclass(frozen=True)
class Judged:
    """A figure and whether it is as the scenario needs it; None: that is not known."""

    figure: Figure
    met: bool | None
    why: Message


def judged(figure: Figure, result: SweepResult, trial: TrialResult) -> Judged:
    """Judge one figure; only intervals and findings count, never a point estimate alone."""
    name = figure.figure
    if name in SPEEDUP_FIGURES:
        return _speedup(figure, result, trial)
    if name.startswith("suite:"):
        return _suite(figure, result, trial)
    if name == "cost_ratio":
        return _cost(figure, trial)
    if name == "failures":
        return _failures(figure, trial)
    return _steadiness(figure, trial)


def _speedup(figure: Figure, result: SweepResult, trial: TrialResult) -> Judged:
    headline = figure.figure == trial.trial.protocol.metric
    decision = result.decision(trial) if headline else trial.decisions[figure.figure]
    if decision.interval is None or decision.speedup is None:
        return Judged(
            figure, None, said("figure.not_measured", figure=said(f"metric.{figure.figure}"))
        )
    why = said(
        "figure.speedup",
        metric=said(f"metric.{figure.figure}"),
        speedup=decision.speedup,
        low=decision.interval.low,
        high=decision.interval.high,
        need=said(f"figure.need.{figure.need}"),
    )
    return Judged(figure, _as_needed(decision, figure.need == "better"), why)


def _as_needed(decision: Decision, better: bool) -> bool | None:
    """`better`: called faster. Not worse: the interval does not reach below the margin."""
    if better:
        if decision.verdict is Verdict.CANNOT_TELL:
            return None
        return decision.verdict is Verdict.FASTER
    interval = decision.interval
    if decision.verdict is Verdict.SLOWER or interval is None:
        return False if interval is not None else None
    return True if interval.log_low >= -decision.log_margin else None


def _suite(figure: Figure, result: SweepResult, trial: TrialResult) -> Judged:
    name = figure.figure.partition(":")[2]
    found = [s for s in of_suite(result, name) if s.pair_key == trial.trial.pair.key]
    if not found:
        return Judged(figure, None, said("figure.suite_not_run", suite=suite_said(name)))
    verdict = tuple(spoken(suite.verdict) for suite in found)
    met = False if any(s.ok is False for s in found) else None
    if met is None and all(s.ok and s.complete and not s.findings for s in found):
        met = True
    return Judged(figure, met, said("figure.suite", suite=suite_said(name), verdict=verdict))


def _cost(figure: Figure, trial: TrialResult) -> Judged:
    ratio = cost_ratio(trial)
    assert figure.at_most is not None
    if ratio is None:
        return Judged(figure, None, said("figure.not_measured", figure=said("figure.of_cost")))
    met = True if ratio.high <= figure.at_most else False if ratio.low > figure.at_most else None
    why = said(
        "figure.cost_ratio",
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        at_most=figure.at_most,
    )
    return Judged(figure, met, why)


def _failures(figure: Figure, trial: TrialResult) -> Judged:
    figures = trial.figures["speculative"]
    planned, failed = figures.get("requests_planned"), figures.get("requests_failed")
    if not planned or failed is None or figure.at_most is None:
        return Judged(figure, None, said("figure.not_measured", figure=said("figure.of_failures")))
    why = said("figure.failures", failed=round(failed), planned=round(planned))
    return Judged(figure, failed / planned <= figure.at_most, why)


def _steadiness(figure: Figure, trial: TrialResult) -> Judged:
    name = figure.figure.partition(":")[2]
    values = [trial.figures[arm].get(name) for arm in ("baseline", "speculative")]
    baseline, speculative = values
    if not baseline or speculative is None or figure.at_most is None:
        return Judged(figure, None, said("figure.not_measured", figure=latency_said(name)))
    ratio = speculative / baseline
    why = said("figure.steadiness", figure=latency_said(name), ratio=ratio, at_most=figure.at_most)
    return Judged(figure, ratio <= figure.at_most, why)


def latency_said(name: str) -> Message:
    """`tpot_p95_s` as a message: the statistic and what it is of."""
    metric, statistic, _ = name.split("_")
    return said("figure.statistic", of=said(f"figure.{metric}_s"), statistic=statistic)


@dataclass(frozen=True)
class Bound:
    """An objective of the scenario, and what the speculative arm did."""

    name: str
    bound_s: float
    seen_s: float | None
    """The arm's statistic, mean over valid blocks; None where not measured."""

    @property
    def met(self) -> bool | None:
        return None if self.seen_s is None else self.seen_s <= self.bound_s

    @property
    def headroom(self) -> float | None:
        """Share of the bound that is left; negative when it is broken."""
        return None if self.seen_s is None else 1 - self.seen_s / self.bound_s


def bound_at(name: str, bound_s: float, trial: TrialResult) -> Bound:
    """`name` is an objective's name, `ttft_p95_s`; it is a block figure's name as well."""
    metric, statistic, _ = name.split("_")
    figure = with_statistic(f"{metric}_s", statistic)
    return Bound(name, bound_s, trial.figures["speculative"].get(figure))
