"""The promises about errors, kept by simulation.

Each row simulates 4,000 trials that look after every pair from 6 to 24. The promise is 5 %; what
passes is 5 % plus three standard errors of 4,000 trials, i.e. 6.03 % (and 94.0 % for coverage), so
that a row that keeps the promise exactly fails in about one of 700 seeds. The seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.analyse.boundaries import LookPlan
from orchestrator.decide.verdict import Decision, Verdict, decide, should_stop
from orchestrator.plan.trial import Protocol
from tests.decide.simulated_trials import (
    Floats,
    autocorrelated,
    from_blocks,
    independent,
    run_trials,
)
from tests.decide.test_verdict import series

TRIALS = 4000
PLAN = LookPlan(0.95, 6, 24)
MARGIN = 0.03
ALLOWED = 0.05 + 3 * math.sqrt(0.05 * 0.95 / TRIALS)
FIFTH = np.linspace(0.0, math.log(0.8), 48)
"""Over the 48 blocks of a trial the machine loses 20 % of its speed."""


def noise(kind: str, seed: int = 11) -> Floats:
    rng = np.random.default_rng(seed)
    match kind:
        case "independent 4 %":
            return independent(rng, TRIALS, 24, 0.04)
        case "independent 15 %":
            return independent(rng, TRIALS, 24, 0.15)
        case "autocorrelated pairs, rho 0.5, 4 %":
            return autocorrelated(rng, TRIALS, 24, 0.04, 0.5)
        case "autocorrelated pairs, rho 0.5, 10 %":
            return autocorrelated(rng, TRIALS, 24, 0.10, 0.5)
        case "autocorrelated pairs, rho 0.25":
            return autocorrelated(rng, TRIALS, 24, 0.04, 0.25)
        case "autocorrelated blocks, rho 0.5":
            return from_blocks(autocorrelated(rng, TRIALS, 48, 0.04, 0.5))
        case "autocorrelated blocks, rho 0.9":
            return from_blocks(autocorrelated(rng, TRIALS, 48, 0.04, 0.9))
        case "level drifts by a fifth":
            return from_blocks(independent(rng, TRIALS, 48, 0.028) + FIFTH)
        case "level drifts by a fifth, quiet machine":
            return from_blocks(independent(rng, TRIALS, 48, 0.002) + FIFTH)
        case "level drifts by a fifth, autocorrelated blocks":
            return from_blocks(autocorrelated(rng, TRIALS, 48, 0.028, 0.5) + FIFTH)
        case "heavy tails":
            tails: Floats = 0.03 * rng.standard_t(3, (TRIALS, 24))
            return tails
        case "one pair in twenty is slowed down at random":
            hit = rng.random((TRIALS, 24)) < 0.05
            sign = rng.choice([-1.0, 1.0], (TRIALS, 24))
            slowed = independent(rng, TRIALS, 24, 0.03)
            slowed += hit * sign * rng.exponential(0.3, (TRIALS, 24))
            return slowed
        case "order effect of 5 %":
            ordered = independent(rng, TRIALS, 24, 0.02)
            ordered += np.where(np.arange(24) % 2, 0.025, -0.025)
            return ordered
    raise ValueError(kind)


KINDS = [
    "independent 4 %",
    "independent 15 %",
    "autocorrelated pairs, rho 0.5, 4 %",
    "autocorrelated pairs, rho 0.5, 10 %",
    "autocorrelated pairs, rho 0.25",
    "autocorrelated blocks, rho 0.5",
    "autocorrelated blocks, rho 0.9",
    "level drifts by a fifth",
    "level drifts by a fifth, quiet machine",
    "level drifts by a fifth, autocorrelated blocks",
    "heavy tails",
    "one pair in twenty is slowed down at random",
    "order effect of 5 %",
]


@pytest.mark.parametrize("kind", KINDS)
def test_identical_arms_are_called_faster_or_slower_in_at_most_one_trial_of_twenty(
    kind: str,
) -> None:
    seen = run_trials(noise(kind), PLAN, MARGIN)
    assert seen.called <= ALLOWED
    assert float((seen.ever_faster | seen.ever_slower).mean()) <= ALLOWED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("truth", [1 + MARGIN, 1 / (1 + MARGIN)])
def test_a_difference_exactly_at_the_margin_is_called_in_at_most_one_trial_of_twenty(
    kind: str, truth: float
) -> None:
    seen = run_trials(noise(kind, seed=12) + math.log(truth), PLAN, MARGIN, truth)
    assert seen.called <= ALLOWED
    assert float((seen.ever_faster | seen.ever_slower).mean()) <= ALLOWED


@pytest.mark.parametrize("kind", ["independent 4 %", "independent 15 %"])
def test_without_a_margin_identical_arms_are_called_no_more_often(kind: str) -> None:
    assert run_trials(noise(kind), PLAN, 0.0).called <= ALLOWED


def test_without_a_margin_noise_of_rho_one_half_errs_at_most_at_5_percent_on_each_side() -> None:
    # The stated limit of the method: with no margin at all both sides can err, 10 % together.
    seen = run_trials(noise("autocorrelated pairs, rho 0.5, 4 %"), PLAN, 0.0)
    assert seen.faster.mean() <= ALLOWED
    assert seen.slower.mean() <= ALLOWED


@pytest.mark.parametrize("kind", [k for k in KINDS if "rho 0.5" not in k or "blocks" in k])
@pytest.mark.parametrize("truth", [1.0, 1.03, 1.10])
def test_where_a_trial_stops_its_interval_holds_the_truth(kind: str, truth: float) -> None:
    seen = run_trials(noise(kind, seed=13) + math.log(truth), PLAN, MARGIN, truth)
    assert seen.covered.mean() >= 1 - ALLOWED


@pytest.mark.parametrize("truth", [1.0, 1.03, 1.10])
def test_coverage_under_strongly_autocorrelated_pairs_is_at_least_90_percent(truth: float) -> None:
    x = noise("autocorrelated pairs, rho 0.5, 4 %", seed=13)
    seen = run_trials(x + math.log(truth), PLAN, MARGIN, truth)
    assert seen.covered.mean() >= 0.90 - 3 * math.sqrt(0.1 * 0.9 / TRIALS)


@pytest.mark.parametrize(("pairs_min", "pairs_max"), [(2, 6), (3, 8), (6, 6), (12, 64)])
@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_other_plans_keep_their_own_promise(
    pairs_min: int, pairs_max: int, confidence: float
) -> None:
    plan, alpha = LookPlan(confidence, pairs_min, pairs_max), 1 - confidence
    allowed = alpha + 3 * math.sqrt(alpha * confidence / TRIALS)
    rng = np.random.default_rng(14)
    even = run_trials(independent(rng, TRIALS, pairs_max, 0.04), plan, 0.0)
    assert float((even.ever_faster | even.ever_slower).mean()) <= allowed
    sticky = autocorrelated(rng, TRIALS, pairs_max, 0.04, 0.5) + math.log(1.03)
    assert float(run_trials(sticky, plan, MARGIN, 1.03).ever_faster.mean()) <= allowed


def test_a_plan_longer_than_the_table_keeps_its_promise_by_the_union_bound() -> None:
    plan = LookPlan(0.95, 6, 80)
    x = autocorrelated(np.random.default_rng(20), TRIALS, 80, 0.04, 0.5) + math.log(1.03)
    assert float(run_trials(x, plan, MARGIN, 1.03).ever_faster.mean()) <= ALLOWED


@pytest.mark.parametrize(
    ("truth", "sd"), [(1.10, 0.04), (1 / 1.10, 0.04), (1.10, 0.02), (1.5, 0.15)]
)
def test_power(truth: float, sd: float) -> None:
    x = independent(np.random.default_rng(15), TRIALS, 24, sd)
    seen = run_trials(x + math.log(truth), PLAN, MARGIN, truth)
    assert (seen.faster if truth > 1 else seen.slower).mean() >= 0.95


def test_a_clear_effect_ends_its_trial_early() -> None:
    x = independent(np.random.default_rng(16), TRIALS, 24, 0.04)
    assert run_trials(x + math.log(1.5), PLAN, MARGIN, 1.5).pairs.mean() < 6.1
    assert run_trials(x + math.log(1.1), PLAN, MARGIN, 1.1).pairs.mean() < 11


def test_identical_arms_on_a_quiet_machine_are_found_practically_equal() -> None:
    x = independent(np.random.default_rng(17), TRIALS, 24, 0.02)
    assert run_trials(x, PLAN, MARGIN).equal.mean() >= 0.95


def test_a_ratio_that_drifts_by_a_fifth_keeps_its_trial_running_in_four_of_five() -> None:
    # From x1.1 faster to x1.1 slower: the first six pairs look faster, and are; the whole is not.
    # An interval speaks of the pairs that were measured, so this is help, and no promise.
    rng = np.random.default_rng(18)
    ended = []
    for _ in range(30):
        x = np.linspace(math.log(1.1), -math.log(1.1), 24) + rng.normal(0, 0.01, 24)
        ended.append(_measured_as_in_a_trial(list(x)))
    assert sum(decision.verdict is Verdict.FASTER for decision in ended) <= 6
    to_the_end = [decision for decision in ended if decision.pairs == 24]
    assert len(to_the_end) >= 24
    assert all(decision.trend.may_drift for decision in to_the_end)


def test_the_simulation_decides_as_the_product_does() -> None:
    x = independent(np.random.default_rng(19), 30, 24, 0.04) + math.log(1.06)
    simulated = run_trials(x, PLAN, MARGIN, 1.06)
    for i, row in enumerate(x):
        for n in range(6, 25):
            decision = decide(series(list(row[:n])), Protocol())
            if decision.verdict is not Verdict.CANNOT_TELL or n == 24:
                break
        assert n == simulated.pairs[i]
        assert (decision.verdict is Verdict.FASTER) == simulated.faster[i]
        assert (decision.verdict is Verdict.NO_PRACTICAL_DIFFERENCE) == simulated.equal[i]


def _measured_as_in_a_trial(x: list[float]) -> Decision:
    for n in range(6, len(x) + 1):
        decision = decide(series(x[:n]), Protocol())
        if should_stop(decision, Protocol(), pairs_measured=n):
            break
    return decision


@pytest.mark.parametrize("truth", [1.0, 1 + MARGIN, 1 / (1 + MARGIN)])
@pytest.mark.parametrize("sd", [0.04, 0.2])
def test_a_single_look_keeps_its_promise_though_time_ends_it(truth: float, sd: float) -> None:
    """A faster arm makes shorter blocks: trials end after 4 to 8 pairs, with the ratio's help."""
    rng = np.random.default_rng(29)
    ratios = math.log(truth) + independent(rng, TRIALS, 8, sd)
    seconds = np.cumsum(1.0 + np.exp(-ratios) + rng.exponential(0.5, ratios.shape), axis=1)
    over = seconds >= 15.0
    pairs = np.where(over.any(axis=1), over.argmax(axis=1) + 1, 8).clip(4, 8)
    assert len(np.unique(pairs)) >= 4
    protocol = Protocol(pairs_min=4, pairs_max=8, looks="once", margin=MARGIN)
    verdicts = [
        decide(series(list(row[:n])), protocol).verdict
        for row, n in zip(ratios, pairs, strict=True)
    ]
    wrong = {Verdict.FASTER, Verdict.SLOWER}
    if truth > 1:
        wrong = {Verdict.FASTER}
    elif truth < 1:
        wrong = {Verdict.SLOWER}
    assert sum(verdict in wrong for verdict in verdicts) / TRIALS <= ALLOWED
