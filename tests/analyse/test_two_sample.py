"""Above temperature 0: a wrong sampler is caught, a right one is not.

The samplers are in `toy_sampler`: 12 tokens, draft length 3 (2 for the bonus token), temperature
0.6, continuations of 8 tokens, and a draft whose tokens are mostly accepted.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from orchestrator.analyse.kernel_two_sample import median_bandwidth, mmd_statistics
from orchestrator.analyse.permutation import permutation_p_value, relabellings
from orchestrator.analyse.token_frequencies import frequency_statistics
from orchestrator.analyse.two_sample import (
    SameDistribution,
    TwoSampleReport,
    embedding_test,
    token_frequency_test,
)
from tests.analyse.toy_sampler import (
    Chains,
    Defect,
    chains,
    sample_plain,
    sample_speculative,
    softmax,
)

LENGTH, TEMPERATURE = 8, 0.6


@dataclass(frozen=True)
class Size:
    """Sample size at which a defect is promised to be caught."""

    prompts: int
    samples: int
    speculation_length: int = 3


STATED: dict[Defect, Size] = {
    "accepts too much": Size(8, 100),
    "ignores temperature": Size(8, 100),
    "residual not taken": Size(8, 200),
    "biased bonus token": Size(16, 400, speculation_length=2),
}


def trial(seed: int, defect: Defect, size: Size, level: float = 0.01) -> TwoSampleReport:
    rng = np.random.default_rng(seed)
    model = chains(rng)
    firsts = rng.integers(0, 12, size.prompts)
    plain = partial(sample_plain, model, count=size.samples, length=LENGTH,
                    temperature=TEMPERATURE, rng=rng)  # fmt: skip
    speculative = partial(sample_speculative, model, count=size.samples, length=LENGTH,
                          temperature=TEMPERATURE, rng=rng, defect=defect,
                          speculation_length=size.speculation_length)  # fmt: skip
    return token_frequency_test(
        {f"p{i}": plain(first=int(f)).tolist() for i, f in enumerate(firsts)},
        {f"p{i}": speculative(first=int(f)).tolist() for i, f in enumerate(firsts)},
        rng,
        level=level,
        permutations=int(2 * size.prompts / level),
    )


def caught(seeds: range, defect: Defect, size: Size, level: float = 0.01) -> int:
    verdicts = [trial(seed, defect, size, level).verdict for seed in seeds]
    return sum(verdict is SameDistribution.DIFFERENT for verdict in verdicts)


# --- the toy samplers themselves


def test_the_right_toy_sampler_has_the_targets_distribution() -> None:
    model = Chains(np.array([[0.0, 1.0, -1.0]] * 3), np.array([[1.0, -1.0, 0.5]] * 3))
    drawn = sample_speculative(model, 0, 20_000, 5, 1.0, np.random.default_rng(0))
    p = softmax(model.target)[0]
    for position in range(5):
        share = np.bincount(drawn[:, position], minlength=3) / 20_000
        assert np.abs(share - p).max() < 5 * 0.5 / 20_000**0.5


def test_too_much_acceptance_leans_to_the_draft() -> None:
    model = Chains(np.array([[0.0, 1.0, -1.0]] * 3), np.array([[1.0, -1.0, 0.5]] * 3))
    p, q = (rows[0] for rows in model.at(1.0))
    # By hand, first position: q min(1, 2p/q), the rest after (p − q)+ .
    accepted = q * np.minimum(1, 2 * p / q)
    residual = np.maximum(p - q, 0)
    expected = accepted + (1 - accepted.sum()) * residual / residual.sum()
    drawn = sample_speculative(
        model, 0, 50_000, 1, 1.0, np.random.default_rng(0), defect="accepts too much"
    )
    share = np.bincount(drawn[:, 0], minlength=3) / 50_000
    assert np.abs(share - expected).max() < 5 * 0.5 / 50_000**0.5
    assert np.abs(expected - p).sum() > 0.2


# --- the statistic


def test_the_statistic_is_pearsons_chi_square() -> None:
    # 8 a and 12 b against 14 a and 6 b: chi-square = 40 (8·6 − 12·14)² / (20·20·22·18).
    first, second = [["a"]] * 8 + [["b"]] * 12, [["a"]] * 14 + [["b"]] * 6
    labels = relabellings(20, 20, 1, np.random.default_rng(0))
    found = frequency_statistics(first, second, labels, positions=1)[0]
    assert found == pytest.approx(40 * (8 * 6 - 12 * 14) ** 2 / (20 * 20 * 22 * 18))


def test_a_pair_of_tokens_shows_what_single_tokens_hide() -> None:
    # Same frequencies at both positions; but the first arm repeats its token, the second never.
    first = [["a", "a"], ["b", "b"]] * 20
    second = [["a", "b"], ["b", "a"]] * 20
    labels = relabellings(40, 40, 199, np.random.default_rng(0))
    singly = frequency_statistics(first, second, labels, positions=2, context=0)
    pairs = frequency_statistics(first, second, labels, positions=2)
    assert (singly[0], pairs[0]) == (0.0, 80.0)
    assert permutation_p_value(pairs) == 1 / 200


def test_the_arms_are_exchangeable() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 3, (30, 4)).tolist() for _ in range(2))
    labels = relabellings(30, 30, 1, rng)
    one = frequency_statistics(first, second, labels, positions=4)[0]
    other = frequency_statistics(second, first, labels, positions=4)[0]
    assert one == pytest.approx(other)


def test_an_earlier_end_is_a_difference() -> None:
    labels = relabellings(20, 20, 99, np.random.default_rng(0))
    found = frequency_statistics([["a", "b"]] * 20, [["a"]] * 20, labels, positions=2)
    assert found[0] == 40.0  # all 40 in the wrong half


# --- the test over many prompts


def test_a_single_wrong_prompt_of_many_is_named() -> None:
    rng = np.random.default_rng(3)
    fair = {f"p{i}": rng.integers(0, 4, (40, 4)).tolist() for i in range(20)}
    other = {f"p{i}": rng.integers(0, 4, (40, 4)).tolist() for i in range(20)}
    other["p7"] = rng.integers(0, 2, (40, 4)).tolist()
    report = token_frequency_test(fair, other, rng, positions=4)
    assert report.verdict is SameDistribution.DIFFERENT
    assert [prompt.prompt_id for prompt in report.offending] == ["p7"]


def test_too_few_samples_cannot_tell() -> None:
    few = {"p": [[1, 2]] * 19}
    report = token_frequency_test(few, few, np.random.default_rng(0))
    assert (report.verdict, report.left_out) == (SameDistribution.CANNOT_TELL, ("p",))
    assert report.p_value is None


def test_tokens_seen_only_once_cannot_tell() -> None:
    once = {"p": [[i] for i in range(30)]}
    again = {"p": [[100 + i] for i in range(30)]}
    report = token_frequency_test(once, again, np.random.default_rng(0), positions=1)
    assert report.verdict is SameDistribution.CANNOT_TELL


@pytest.mark.slow
def test_a_detectable_shift_is_stated_and_detected() -> None:
    """At the stated shift the power is near the stated 0.9: here between 0.75 and 1, 40 seeds."""
    rng = np.random.default_rng(4)
    prompts, samples, tokens = 8, 80, 4

    def arm(shift: float) -> dict[str, list[list[int]]]:
        p = np.full(tokens, 1 / tokens) + shift / 2 * np.array([1, 1, -1, -1])
        return {f"p{i}": rng.choice(tokens, (samples, 1), p=p).tolist() for i in range(prompts)}

    def report(shift: float) -> TwoSampleReport:
        return token_frequency_test(arm(0), arm(shift), rng, positions=1, permutations=1000)

    stated = report(0).detectable_shift
    assert stated is not None and 0.05 < stated < 0.25
    found = sum(report(stated).verdict is SameDistribution.DIFFERENT for _ in range(40))
    assert found >= 30


@pytest.mark.parametrize("defect", ["accepts too much", "ignores temperature"])
def test_gross_defects_are_caught_with_100_samples_of_8_prompts(defect: Defect) -> None:
    assert caught(range(5), defect, STATED[defect]) == 5


@pytest.mark.slow
@pytest.mark.parametrize("defect", list(STATED))
def test_every_defect_is_caught_at_its_stated_size(defect: Defect) -> None:
    """Stated power at level 0.01: at least 0.9, over 20 seeds."""
    assert caught(range(100, 120), defect, STATED[defect]) >= 18


def test_a_right_sampler_passes() -> None:
    """Level 0.05: of 30 right samplers at most 6 are called different (chance of more: 0.1 %)."""
    assert caught(range(30), "none", Size(4, 40), level=0.05) <= 6


@pytest.mark.slow
def test_a_right_sampler_passes_at_the_stated_error_rate() -> None:
    """Level 0.05: of 500 at most 40 (chance of more with a true rate of 0.05: 0.2 %)."""
    assert caught(range(1000, 1500), "none", Size(4, 40), level=0.05) <= 40


# --- embeddings


def embeddings(rng: np.random.Generator, count: int, shift: float = 0.0) -> np.ndarray:
    """Answers fall into two clusters; `shift` is the share that moves from one to the other."""
    centres = np.zeros((2, 16))
    centres[0, 0] = centres[1, 1] = 1.0
    which = (rng.random(count) < 0.5 + shift).astype(int)
    return centres[which] + 0.1 * rng.normal(size=(count, 16))


def test_mmd_by_hand() -> None:
    x, y = np.array([[0.0], [1.0]]), np.array([[2.0], [3.0]])
    labels = relabellings(2, 2, 1, np.random.default_rng(0))

    def k(distance: float) -> float:
        return float(np.exp(-(distance**2) / 2))

    # within: one pair each, at distance 1; across: distances 2, 3, 1, 2.
    by_hand = 2 * k(1) - 2 * (k(2) + k(3) + k(1) + k(2)) / 4
    assert mmd_statistics(x, y, labels, bandwidth=1.0)[0] == pytest.approx(by_hand)


def test_the_median_heuristic_leaves_equal_vectors_out() -> None:
    points = np.array([0.0, 0.0, 3.0])
    squared = (points[:, None] - points[None, :]) ** 2
    assert median_bandwidth(squared) == 3.0
    assert median_bandwidth(np.zeros((3, 3))) is None


def test_equal_answers_everywhere_are_no_difference() -> None:
    same = {"p": np.ones((20, 4))}
    report = embedding_test(same, same, np.random.default_rng(0))
    assert (report.verdict, report.p_value) == (SameDistribution.NO_DIFFERENCE_FOUND, 1.0)


def test_a_shift_of_a_quarter_of_the_answers_is_caught_with_40_samples_of_8_prompts() -> None:
    """Stated power at level 0.01: at least 0.9, over 20 seeds."""
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        baseline = {f"p{i}": embeddings(rng, 40) for i in range(8)}
        other = {f"p{i}": embeddings(rng, 40, 0.25) for i in range(8)}
        report = embedding_test(baseline, other, rng, permutations=1600)
        found += report.verdict is SameDistribution.DIFFERENT
    assert found >= 18


def test_equal_embeddings_pass_at_the_stated_error_rate() -> None:
    """Level 0.05: of 60 at most 8 (chance of more with a true rate of 0.05: 0.3 %)."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        arms = [{f"p{i}": embeddings(rng, 20) for i in range(3)} for _ in range(2)]
        report = embedding_test(*arms, rng, level=0.05, permutations=199)
        alarms += report.verdict is SameDistribution.DIFFERENT
    assert alarms <= 8


def test_embeddings_that_do_not_fit_are_refused() -> None:
    labels = relabellings(2, 2, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"\(n, d\) and \(m, d\)"):
        mmd_statistics(np.zeros((2, 3)), np.zeros((2, 4)), labels)
    with pytest.raises(ValueError, match="at least two"):
        mmd_statistics(np.zeros((1, 3)), np.zeros((3, 3)), labels)
    with pytest.raises(ValueError, match="finite"):
        mmd_statistics(np.full((2, 3), np.nan), np.zeros((2, 3)), labels)
