"""Does speculation fit a scenario: with which deployment, at which load, with what to spare?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.decide.conclusion import Conditions
from orchestrator.decide.conditions import (
    conditions_of,
    control_state,
    distinct,
    ids,
    input_length,
    level_of,
)
from orchestrator.decide.message import Message, said
from orchestrator.decide.scenario_figure import Bound, Judged, bound_at, judged, latency_said
from orchestrator.decide.standing import Standing, cell_at, load_said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.spec.goals import SCENARIOS
from orchestrator.spec.scenario import Figure, Profile, profile_from, read_profile


def _saves(figure: Figure) -> bool:
    return figure.figure == "cost_ratio" and figure.at_most is not None and figure.at_most < 1


class Fit(StrEnum):
    FITS = "fits"
    CONDITIONS = "fits with conditions"
    DOES_NOT_FIT = "does not fit"
    NOT_ENOUGH = "not enough evidence"


@dataclass(frozen=True)
class Candidate:
    """One cell seen through a scenario's figures."""

    trial: TrialResult
    figures: tuple[Judged, ...]
    bounds: tuple[Bound, ...]

    @property
    def refused(self) -> bool:
        """An objective is broken, a required figure is told to be otherwise, or nothing that
        speculation is for is gained."""
        return (
            any(b.met is False for b in self.bounds)
            or any(j.met is False for j in self.figures if j.figure.required)
            or bool(self.gains and all(j.met is False for j in self.gains))
        )

    @property
    def qualifies(self) -> bool:
        """Every objective is kept, every required figure is as needed, and something is gained."""
        return (
            all(b.met for b in self.bounds)
            and all(j.met for j in self.figures if j.figure.required)
            and bool(not self.gains or any(j.met for j in self.gains))
        )

    @property
    def gains(self) -> tuple[Judged, ...]:
        """The figures that must become better: without one of them there is no reason for
        speculation, whatever else it leaves alone."""
        return tuple(j for j in self.figures if j.figure.need == "better" or _saves(j.figure))

    @property
    def score(self) -> float:
        """Formula: sum of weights of figures as needed / sum of all weights. 0 to 1; what is not
        known counts as not met."""
        whole = sum(j.figure.weight for j in self.figures)
        return sum(j.figure.weight for j in self.figures if j.met) / whole

    @property
    def headroom(self) -> float | None:
        """Of the tightest objective; None without one."""
        return min((h for b in self.bounds if (h := b.headroom) is not None), default=None)


@dataclass(frozen=True)
class ScenarioFit:
    """The answer for one scenario."""

    profile: Profile
    fit: Fit
    reason: Message
    conditions: tuple[Message, ...]
    """Under which it fits, or what is missing."""
    operating_point: Candidate | None
    """The cell to run it at; of cells that do not qualify never one."""
    load_headroom: float | None
    """Highest measured load at which it qualifies / the operating point's."""
    candidates: tuple[Candidate, ...]
    measured: Conditions
    evidence: tuple[str, ...]


def scenario_fits(
    result: SweepResult, profiles: Sequence[Profile] | None = None
) -> tuple[ScenarioFit, ...]:
    """One answer for every scenario asked for; for all five where none was."""
    asked = profiles_of(result.manifest) if profiles is None else profiles
    return tuple(scenario_fit(result, profile) for profile in asked)


def profiles_of(manifest: Mapping[str, Any]) -> tuple[Profile, ...]:
    """The profiles as they were when the sweep ran; bundled ones for sweeps that name none."""
    kept = manifest.get("scenarios")
    if kept:
        return tuple(profile_from(plain) for plain in kept)
    return tuple(read_profile(name) for name in SCENARIOS)


def scenario_fit(result: SweepResult, profile: Profile) -> ScenarioFit:
    """Rules, the first that applies:

    - no measured cell has the scenario's shape, or the A/A control failed: not enough evidence
    - some cell qualifies (its objectives are kept, what the scenario requires is so, and at least
      one figure that must be better is): fits, or fits with conditions when some other load or
      deployment does not qualify, a figure that is not required is not as needed, or the sweep is
      simulated
    - every cell is refused: does not fit
    - else: not enough evidence
    """
    cells = [t for t in result.trials if _of_shape(result, profile, t)]
    bounds = {**profile.slo, **_own_bounds(result, profile)}
    measured = [t for t in cells if cell_at(result, t).standing is not Standing.MISSING]
    candidates = tuple(_candidate(result, profile, bounds, trial) for trial in measured)
    good = [c for c in candidates if c.qualifies]
    chosen = _operating_point(profile, good)
    conditions: tuple[Message, ...] = ()
    if not cells:
        fit, reason = Fit.NOT_ENOUGH, said("scenario.no_shape", shape=_shape(profile))
    elif not candidates:
        fit, reason = Fit.NOT_ENOUGH, said("scenario.nothing_measured")
    elif control_state(result) == "failed":
        fit, reason, chosen = Fit.NOT_ENOUGH, said("scenario.control_failed"), None
    elif chosen is not None:
        conditions = tuple(_conditions(result, chosen, candidates))
        fit = Fit.CONDITIONS if conditions else Fit.FITS
        reason = said(
            "scenario.fits",
            draft=chosen.trial.trial.pair.speculative.label(),
            load=load_said(cell_at(result, chosen.trial)),
            figures=tuple(j.why for j in chosen.figures if j.met),
        )
    elif all(c.refused for c in candidates):
        best = max(candidates, key=lambda c: c.score)
        fit = Fit.DOES_NOT_FIT
        reason = said("scenario.refused", why=tuple(_objections(best)), cells=len(candidates))
    else:
        best = max((c for c in candidates if not c.refused), key=lambda c: c.score)
        fit = Fit.NOT_ENOUGH
        reason = said("scenario.unknown", why=tuple(_unknowns(best)))
    return ScenarioFit(
        profile=profile,
        fit=fit,
        reason=reason,
        conditions=conditions,
        operating_point=chosen,
        load_headroom=_load_headroom(chosen, good),
        candidates=candidates,
        measured=conditions_of(result, cells),
        evidence=ids(cells),
    )


def _own_bounds(result: SweepResult, profile: Profile) -> dict[str, float]:
    """The experiment's objectives: they are the user's, the profile's are typical."""
    own = result.manifest["experiment"].get("slo") or {}
    return {name: float(bound) for name, bound in own.items()}


def _of_shape(result: SweepResult, profile: Profile, trial: TrialResult) -> bool:
    cell, shape = trial.trial.cell, profile.workload
    length = input_length(result.manifest, cell.workload.name)
    asked = shape.input_tokens
    if length is None and (asked.min is not None or asked.max is not None):
        return False
    return (
        (length is None or asked.holds(length))
        and shape.output_tokens.holds(cell.workload.output_tokens)
        and shape.temperature.holds(cell.sampling.temperature)
        and shape.load in ("any", cell.load.mode)
    )


def _shape(profile: Profile) -> tuple[Message, ...]:
    shape = profile.workload
    ranges = {
        name: getattr(shape, name) for name in ("input_tokens", "output_tokens", "temperature")
    }
    parts = [
        said(f"shape.{name}.{end}", bound=bound)
        for name, asked in ranges.items()
        for end, bound in (("min", asked.min), ("max", asked.max))
        if bound is not None
    ]
    if shape.load != "any":
        parts.append(said(f"shape.load.{shape.load}"))
    return tuple(parts)


def _candidate(
    result: SweepResult, profile: Profile, bounds: Mapping[str, float], trial: TrialResult
) -> Candidate:
    return Candidate(
        trial=trial,
        figures=tuple(judged(figure, result, trial) for figure in profile.figures),
        bounds=tuple(bound_at(name, bound, trial) for name, bound in bounds.items()),
    )


def _operating_point(profile: Profile, good: Sequence[Candidate]) -> Candidate | None:
    """The best score first; among equals what the profile asks for."""
    if not good:
        return None

    def figure(candidate: Candidate, name: str) -> float:
        return candidate.trial.figures["speculative"].get(name, 0.0)

    def rank(candidate: Candidate) -> tuple[float, float]:
        if profile.operating_point == "highest_throughput":
            return candidate.score, figure(candidate, "output_tok_per_s")
        if profile.operating_point == "lowest_latency":
            return candidate.score, -figure(candidate, "e2e_mean_s")
        return candidate.score, level_of(candidate.trial.trial.cell.load) or 0.0

    return max(good, key=rank)


def _load_headroom(chosen: Candidate | None, good: Sequence[Candidate]) -> float | None:
    if chosen is None:
        return None
    same = [c for c in good if c.trial.trial.pair.key == chosen.trial.trial.pair.key]
    levels = [v for c in same if (v := level_of(c.trial.trial.cell.load)) is not None]
    own = level_of(chosen.trial.trial.cell.load)
    return max(levels) / own if own and levels else None


def _conditions(
    result: SweepResult, chosen: Candidate, candidates: Sequence[Candidate]
) -> Iterator[Message]:
    if result.simulated:
        yield said("scenario.simulated")
    for figure in chosen.figures:
        if figure.met is not True:
            word = "scenario.not_as_needed" if figure.met is False else "scenario.not_known"
            yield said(word, figure=figure.why)
    others = [c for c in candidates if _same_deployment(c, chosen) and not c.qualifies]
    own = chosen.trial.trial.cell.workload.name
    at = tuple(
        said(
            "scenario.at",
            load=load_said(cell_at(result, c.trial)),
            temperature=c.trial.trial.cell.sampling.temperature,
        )
        for c in others
        if c.trial.trial.cell.workload.name == own
    )
    if at:
        yield said("scenario.not_at", cells=at)
    on = distinct(w for c in others if (w := c.trial.trial.cell.workload.name) != own)
    good = {
        c.trial.trial.cell.workload.name
        for c in candidates
        if _same_deployment(c, chosen) and c.qualifies
    }
    for word, names in (
        ("scenario.not_on", tuple(name for name in on if name not in good)),
        ("scenario.partly_on", tuple(name for name in on if name in good)),
    ):
        if names:
            yield said(word, workloads=names)


def _same_deployment(one: Candidate, other: Candidate) -> bool:
    return one.trial.trial.pair.key == other.trial.trial.pair.key


def _objections(candidate: Candidate) -> Iterator[Message]:
    for bound in candidate.bounds:
        if bound.met is False and bound.seen_s is not None:
            yield said(
                "bound.broken",
                name=latency_said(bound.name),
                seen=bound.seen_s,
                bound=bound.bound_s,
            )
    lost = candidate.gains if all(j.met is False for j in candidate.gains) else ()
    for figure in candidate.figures:
        if figure.met is False and (figure.figure.required or figure in lost):
            yield figure.why


def _unknowns(candidate: Candidate) -> Iterator[Message]:
    for bound in candidate.bounds:
        if bound.met is None:
            yield said("bound.not_measured", name=latency_said(bound.name))
    gained = any(j.met for j in candidate.gains)
    for figure in candidate.figures:
        open_gain = figure in candidate.gains and not gained
        if figure.met is None and (figure.figure.required or open_gain):
            yield figure.why
