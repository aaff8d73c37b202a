"""Simulated trials that look after every pair, many at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.analyse.autocorrelation import inflated_standard_error
from orchestrator.analyse.boundaries import LookPlan, critical_value

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Trials:
    """What became of each trial. Shape of every field: (trials,)."""

    faster: Flags
    """The verdict where it stopped."""
    slower: Flags
    equal: Flags
    pairs: NDArray[np.int64]
    """Pairs used."""
    covered: Flags
    """The interval at the stop holds the truth."""
    ever_faster: Flags
    """At any look: what the worst stopping rule could make of it."""
    ever_slower: Flags

    @property
    def called(self) -> float:
        return float((self.faster | self.slower).mean())


def run_trials(log_ratios: Floats, plan: LookPlan, margin: float, truth: float = 1.0) -> Trials:
    """`log_ratios`: (trials, pairs_max). The drift rule, which only delays a stop, is left out."""
    m, log_truth = math.log1p(margin), math.log(truth)
    trials = len(log_ratios)
    faster, slower, equal, covered, ever_faster, ever_slower = np.zeros((6, trials), dtype=bool)
    pairs = np.full(trials, plan.pairs_max)
    running = np.ones(trials, dtype=bool)
    for n in range(plan.pairs_min, plan.pairs_max + 1):
        seen = log_ratios[:, :n]
        half = critical_value(plan, n) * inflated_standard_error(seen)
        low, high = seen.mean(axis=-1) - half, seen.mean(axis=-1) + half
        above, below, within = low > m, high < -m, (low >= -m) & (high <= m)
        stops = running & (above | below | within | (n == plan.pairs_max))
        ever_faster |= above
        ever_slower |= below
        faster |= stops & above
        slower |= stops & below
        equal |= stops & within
        covered |= stops & (low <= log_truth) & (log_truth <= high)
        pairs[stops] = n
        running &= ~stops
    return Trials(faster, slower, equal, pairs, covered, ever_faster, ever_slower)


def independent(rng: np.random.Generator, trials: int, pairs: int, sd: float) -> Floats:
    return rng.normal(0.0, sd, (trials, pairs))


def autocorrelated(
    rng: np.random.Generator, trials: int, pairs: int, sd: float, rho: float
) -> Floats:
    """Stationary AR(1) between pairs."""
    x = rng.standard_normal((trials, pairs))
    for i in range(1, pairs):
        x[:, i] = rho * x[:, i - 1] + math.sqrt(1 - rho * rho) * x[:, i]
    return np.asarray(sd * x, dtype=np.float64)


def from_blocks(levels: Floats) -> Floats:
    """Log ratios of pairs whose blocks A B, B A, ... have these log throughputs, in time order.

    Shape: (trials, 2 * pairs) -> (trials, pairs)
    """
    first, second = levels[:, 0::2], levels[:, 1::2]
    baseline_first = np.arange(first.shape[1]) % 2 == 0
    return np.asarray(np.where(baseline_first, second - first, first - second), dtype=np.float64)
