"""Where `boundaries.csv` comes from: a seeded simulation, run once, at development time.

    python -m orchestrator.analyse.boundary_calibration > orchestrator/analyse/boundaries.csv

Under normal pairs with AR(1) noise of a given rho, the sequence of statistics
T_n = (mean - truth) / inflated standard error is free of the unknown mean and scale, so its
crossing probabilities can be tabulated once. The looks share the error in proportion to n: look n
is made at the two-sided nominal level p(n) = p_max * n / pairs_max (between Pocock's constant
levels and O'Brien & Fleming's; late looks, with more pairs, get more). The table holds the largest
p_max such that
  - with independent pairs, P(any look misses the truth) <= alpha, and
  - with rho = 0.5, P(any look misses it) <= 2 alpha, i.e. at most alpha on either side: no more
    than alpha of trials at the margin are called faster (or slower) in spite of such noise,
each less two standard errors of the simulation. The second is the one that binds.
Sources: Jennison & Turnbull 1989, JRSS B 51 (repeated confidence intervals); Shao & Feng 2007,
Contemp. Clin. Trials 28 (group sequential t tests calibrated by simulation); Kim & DeMets 1987,
Biometrika 74 (spending in proportion to a power of the information).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy.special import stdtr

from orchestrator.analyse.autocorrelation import FloatArray, inflated_standard_error

ALPHAS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
STRESS_RHO = 0.5
PAIRS_MIN_GRID = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)
PAIRS_MAX_GRID = (*range(2, 33), *range(34, 65, 2))
SEED = 20240
TRIALS = 1_000_000
CHUNK = 20_000


def ar1_noise(rng: np.random.Generator, trials: int, pairs: int, rho: float) -> FloatArray:
    """Stationary AR(1) noise of unit variance; shape (trials, pairs)."""
    noise = rng.standard_normal((trials, pairs))
    for i in range(1, pairs):
        noise[:, i] = rho * noise[:, i - 1] + np.sqrt(1 - rho * rho) * noise[:, i]
    return noise


def levels_over_n(noise: FloatArray) -> FloatArray:
    """p(n) / n at every look n = 2..N, where p is the two-sided level of T_n; (trials, N - 1)."""
    looks = []
    for n in range(2, noise.shape[-1] + 1):
        seen = noise[:, :n]
        t = np.abs(seen.mean(axis=-1)) / inflated_standard_error(seen)
        looks.append(2 * stdtr(n - 1, -t) / n)
    return np.stack(looks, axis=-1)


def low_quantile(values: FloatArray, alpha: float) -> float:
    """The alpha quantile, less two standard errors of its own level."""
    expected = alpha * len(values)
    rank = int(np.floor(expected - 2 * np.sqrt(expected * (1 - alpha))))
    if rank < 1:
        raise ValueError(f"too few simulated trials for alpha={alpha}: {len(values)}")
    return float(np.partition(values, rank - 1)[rank - 1])


def calibrate(
    rng: np.random.Generator,
    trials: int,
    pairs_min_grid: tuple[int, ...],
    pairs_max_grid: tuple[int, ...],
    alphas: tuple[float, ...],
) -> Iterator[tuple[int, int, tuple[float, ...]]]:
    """Rows of the table: pairs_min, pairs_max, p_max for every alpha."""
    last = max(pairs_max_grid)
    scaled: dict[float, FloatArray] = {}
    for rho in (0.0, STRESS_RHO):
        parts = []
        for start in range(0, trials, CHUNK):
            noise = ar1_noise(rng, min(CHUNK, trials - start), last, rho)
            parts.append(levels_over_n(noise).astype(np.float32))
        scaled[rho] = np.concatenate(parts)
    for pairs_min in pairs_min_grid:
        running = {
            rho: np.minimum.accumulate(levels[:, pairs_min - 2 :], axis=-1)
            for rho, levels in scaled.items()
        }
        for pairs_max in pairs_max_grid:
            if pairs_max < pairs_min:
                continue
            independent = running[0.0][:, pairs_max - pairs_min]
            stressed = running[STRESS_RHO][:, pairs_max - pairs_min]
            yield (
                pairs_min,
                pairs_max,
                tuple(
                    pairs_max * min(low_quantile(independent, a), low_quantile(stressed, 2 * a))
                    for a in alphas
                ),
            )


def main() -> None:
    rows = calibrate(np.random.default_rng(SEED), TRIALS, PAIRS_MIN_GRID, PAIRS_MAX_GRID, ALPHAS)
    sys.stdout.write("pairs_min,pairs_max," + ",".join(f"{a:g}" for a in ALPHAS) + "\n")
    for pairs_min, pairs_max, levels in rows:
        # Rounded down in the fourth digit: never more liberal than what was simulated.
        digits = ",".join(f"{level * 0.9995:.3e}" for level in levels)
        sys.stdout.write(f"{pairs_min},{pairs_max},{digits}\n")


if __name__ == "__main__":
    main()
