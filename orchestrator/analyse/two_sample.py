"""At temperature > 0: do two arms answer with one distribution? Tests over many prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import optimize, stats

from orchestrator.analyse.adjusted_p_values import benjamini_hochberg, holm
from orchestrator.analyse.kernel_two_sample import mmd_statistics
from orchestrator.analyse.permutation import (
    Floats,
    combined,
    permutation_p_value,
    permutations_needed,
    relabellings,
)
from orchestrator.analyse.token_frequencies import frequency_statistics

LEVEL = 0.01
"""Chance of calling two equal arms different, over all prompts of one test together."""
POSITIONS = 8
POWER = 0.9
SAMPLES_MIN = 20
"""Per prompt and arm; with fewer, nearly every token is rare and the test has no power."""


class SameDistribution(StrEnum):
    """What may be said of the two arms' distributions. Sameness itself cannot be shown."""

    DIFFERENT = "different"
    NO_DIFFERENCE_FOUND = "no difference found"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class PromptTest:
    """One prompt's part in a two-sample test."""

    prompt_id: str
    baseline_samples: int
    speculative_samples: int
    statistic: float
    p_value: float
    holm: float
    """Adjusted over the prompts: at or below the level, this prompt is different on its own."""
    benjamini_hochberg: float
    """Adjusted over the prompts: which to look at first."""


@dataclass(frozen=True, slots=True)
class TwoSampleReport:
    """A verdict and everything it rests on."""

    verdict: SameDistribution
    test: str
    prompts: tuple[PromptTest, ...]
    combined_p_value: float | None
    """All prompts together: finds a small difference that every prompt has."""
    p_value: float | None
    """Of the whole test, by which it is judged; None when nothing could be tested."""
    level: float
    permutations: int
    left_out: tuple[str, ...]
    """Prompts with fewer samples than needed in an arm."""
    detectable_shift: float | None
    """Share of the tokens at every position of every prompt that would have to go elsewhere for the
    test to notice 9 times in 10 (`detectable_shift`); None where it is not known."""
    reason: str

    @property
    def offending(self) -> tuple[PromptTest, ...]:
        """The prompts that are different on their own, at half the level (Holm), worst first."""
        found = [prompt for prompt in self.prompts if prompt.holm <= self.level / 2]
        return tuple(sorted(found, key=lambda prompt: prompt.p_value))


def token_frequency_test(
    baseline: Mapping[str, Sequence[Sequence[Hashable]]],
    speculative: Mapping[str, Sequence[Sequence[Hashable]]],
    rng: np.random.Generator,
    *,
    positions: int = POSITIONS,
    level: float = LEVEL,
    permutations: int | None = None,
    samples_min: int = SAMPLES_MIN,
) -> TwoSampleReport:
    """Per-position token frequencies of short continuations, by permutation, over many prompts.

    Both mappings go from a prompt to its continuations (token ids, or words or characters where the
    server gives none), one per seed. Every sample must have a seed of its own, in both arms: with
    seeds in common the samples are not independent, and a difference is missed.

    Per prompt: `token_frequencies.frequency_statistics`, whole continuations relabelled within the
    prompt. Over the prompts: the standardised sum (`permutation.combined`) and Holm, each at half
    the level, p = min(1, 2 min(combined, smallest Holm)).
    """

    def statistics(prompt: str, labels_rng: np.random.Generator, count: int) -> Floats:
        first, second = baseline[prompt], speculative[prompt]
        labels = relabellings(len(first), len(second), count, labels_rng)
        return frequency_statistics(first, second, labels, positions=positions)

    sizes = {p: (len(baseline[p]), len(speculative[p])) for p in baseline if p in speculative}
    name = f"token pair frequencies at positions 1 to {positions}, permutation"
    report = _over_prompts(
        name, sizes, statistics, rng, level, permutations, samples_min, positions
    )
    silent = all(prompt.statistic == 0 for prompt in report.prompts)
    if silent and any(_vary([*baseline[p], *speculative[p]], positions) for p in sizes):
        reason = "nearly every token was seen only once; take more samples or fewer positions"
        return replace(report, verdict=SameDistribution.CANNOT_TELL, reason=reason)
    return report


def embedding_test(
    baseline: Mapping[str, Floats],
    speculative: Mapping[str, Floats],
    rng: np.random.Generator,
    *,
    level: float = LEVEL,
    permutations: int | None = None,
    samples_min: int = SAMPLES_MIN,
) -> TwoSampleReport:
    """Kernel two-sample test (MMD) on the embeddings of whole answers, over many prompts.

    Both mappings go from a prompt to an array (samples, dimensions), seeds as in
    `token_frequency_test`; embeddings of different prompts are never mixed. Combined over the
    prompts in the same way.
    """

    def statistics(prompt: str, labels_rng: np.random.Generator, count: int) -> Floats:
        first, second = baseline[prompt], speculative[prompt]
        labels = relabellings(len(first), len(second), count, labels_rng)
        return mmd_statistics(first, second, labels)

    sizes = {p: (len(baseline[p]), len(speculative[p])) for p in baseline if p in speculative}
    name = "kernel two-sample test (MMD) on embeddings, permutation"
    return _over_prompts(name, sizes, statistics, rng, level, permutations, max(2, samples_min))


def detectable_shift(
    per_prompt: Floats, sizes: Sequence[tuple[int, int]], *, positions: int, level: float
) -> float | None:
    """How large a difference in all prompts the combined token test notices 9 times in 10.

    Formula: with W² = Σ_v (p_v − q_v)² / ((p_v + q_v)/2) per position, the statistic of a prompt is
        chi-square, d = var/2 degrees of freedom, noncentrality W² · positions · n m / (n + m).
        The smallest total noncentrality λ with P(χ²(Σd, λ) > q) = 0.9, q the 1 − level/2 quantile
        of χ²(Σd), solved for W. A shift of a share s of the tokens, spread evenly, has W = 2 s: the
        result is W / 2.
    Unit: share of tokens (total variation distance).
    Undefined: None when no prompt's statistic varies. An approximation (independent positions, like
        prompts); the tests hold it to a power between 0.75 and 1.
    """
    spread = per_prompt.std(axis=1)
    varies = [(sd, size) for sd, size in zip(spread.tolist(), sizes, strict=True) if sd > 1e-9]
    if not varies:
        return None
    freedom = sum(sd * sd / 2 for sd, _ in varies)
    threshold = float(stats.chi2.ppf(1 - level / 2, freedom))
    noncentrality = float(
        optimize.brentq(
            lambda nc: float(stats.ncx2.sf(threshold, freedom, nc)) - POWER, 1e-6, 100 * threshold
        )
    )
    typical = math.sqrt(2 * freedom / len(varies))
    weight = sum(positions * n * m / (n + m) * typical / sd for sd, (n, m) in varies)
    return min(1.0, math.sqrt(noncentrality / weight) / 2)


def _vary(samples: Sequence[Sequence[Hashable]], positions: int) -> bool:
    return len({tuple(sample[:positions]) for sample in samples}) > 1


def _over_prompts(
    test: str,
    sizes: Mapping[str, tuple[int, int]],
    statistics: Callable[[str, np.random.Generator, int], Floats],
    rng: np.random.Generator,
    level: float,
    permutations: int | None,
    samples_min: int,
    positions: int | None = None,
) -> TwoSampleReport:
    if not 0 < level < 1:
        raise ValueError(f"level: `0 < level < 1` must hold, got {level}")
    used = [prompt for prompt, size in sizes.items() if min(size) >= samples_min]
    left_out = tuple(prompt for prompt in sizes if prompt not in used)
    count = permutations or max(999, permutations_needed(len(used), level))
    if not used:
        reason = f"no prompt has {samples_min} samples in both arms"
        return TwoSampleReport(
            SameDistribution.CANNOT_TELL, test, (), None, None, level, count, left_out, None, reason
        )
    rows = np.stack([statistics(prompt, rng, count) for prompt in used])
    singly = [permutation_p_value(row) for row in rows]
    together = permutation_p_value(combined(rows))
    by_holm, by_bh = holm(singly), benjamini_hochberg(singly)
    p_value = min(1.0, 2 * min(together, min(by_holm)))
    different = p_value <= level
    used_sizes = [sizes[prompt] for prompt in used]
    shift = (
        detectable_shift(rows, used_sizes, positions=positions, level=level) if positions else None
    )
    reason = (
        f"p = {p_value:.2g} over {len(used)} prompts ({level:g} needed); all together "
        f"{together:.2g}, the worst alone {min(by_holm):.2g}"
    )
    return TwoSampleReport(
        verdict=SameDistribution.DIFFERENT if different else SameDistribution.NO_DIFFERENCE_FOUND,
        test=test,
        prompts=tuple(
            PromptTest(p, *sizes[p], float(rows[i, 0]), singly[i], by_holm[i], by_bh[i])
            for i, p in enumerate(used)
        ),
        combined_p_value=together,
        p_value=p_value,
        level=level,
        permutations=count,
        left_out=left_out,
        detectable_shift=shift,
        reason=reason,
    )
