"""Two arms' answers side by side: each planted fault is named, and equal arms are not accused."""

import numpy as np
import pytest

from orchestrator.analyse.agreement import Answer
from orchestrator.analyse.paired_outcomes import Comparison
from orchestrator.analyse.quality import QualityReport, answer_quality, compare_quality, cosine

NOUNS = "river bridge candle garden winter letter window engine harbour meadow".split()  # noqa: SIM905
PROMPTS = 80


def answers(seed: int) -> list[Answer]:
    """English sentences with a name and a number each; the seed changes the wording a little."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(PROMPTS):
        fixed = np.random.default_rng(i)
        lines = []
        for _ in range(4):
            a, b, c = fixed.choice(NOUNS, 3, replace=False)
            if rng.random() < 0.2:
                a = rng.choice(NOUNS)
            lines.append(
                f"It is said that Ana saw the {a} of {fixed.integers(10, 99)} by the {b} and {c}."
            )
        text = " ".join(lines)
        found.append(Answer(f"p{i}", text, tuple(range(len(text.split()))), "stop"))
    return found


def report(speculative: list[Answer]) -> QualityReport:
    return compare_quality(answers(1), speculative, np.random.default_rng(0), relaunched=answers(2))


def spoilt(share: float, text: str, finish: str = "stop") -> list[Answer]:
    good = answers(3)
    bad = int(share * PROMPTS)
    return [
        Answer(a.prompt_id, text, tuple(range(len(text.split()))), finish) if i < bad else a
        for i, a in enumerate(good)
    ]


def test_an_equal_arm_is_worse_in_nothing_and_undecided_in_nothing() -> None:
    found = report(answers(3))
    assert found.prompts == PROMPTS
    assert (found.worse, found.undecided) == ((), ())


@pytest.mark.parametrize(
    ("text", "finish", "figure"),
    [
        ("", "stop", "empty"),
        ("It is the river " * 30, "length", "cut_off"),
        ("It is the river " * 30, "stop", "looping"),
        ("I'm sorry, but I can't help with that.", "stop", "refuses"),
        ("```python\nx = 1", "stop", "open_code_block"),
        ("Es ist nicht der Fluss, und die Brücke ist auch nicht von dem Garten.", "stop",
         "off_language"),
        ("It is said that the river of the garden is by the window.", "stop", "kept_information"),
        ("It is said that the river is by the window.", "stop", "lengths"),
    ],
)  # fmt: skip
def test_a_fault_in_a_quarter_of_the_answers_is_named(text: str, finish: str, figure: str) -> None:
    assert figure in report(spoilt(0.25, text, finish)).worse


@pytest.mark.slow
def test_equal_arms_are_accused_at_most_at_the_level() -> None:
    """Level 0.05 over all figures: of 20 seeds at most 4 (chance of more: 0.3 %)."""
    baseline, relaunched = answers(1), answers(2)
    accused = sum(
        bool(
            compare_quality(
                baseline, answers(seed), np.random.default_rng(seed), relaunched=relaunched
            ).worse
        )
        for seed in range(10, 30)
    )
    assert accused <= 4


def test_without_a_floor_two_figures_are_left_out() -> None:
    found = compare_quality(answers(1), answers(3), np.random.default_rng(0))
    assert "off_language" not in found.rates
    assert set(found.scores) == {"distinct_2"}
    assert found.lengths_from == "tokens"


def test_similarity_is_compared_with_the_floors() -> None:
    rng = np.random.default_rng(1)
    similarity = {
        f"p{i}": (0.95 + 0.01 * rng.random(), 0.6 + 0.1 * rng.random()) for i in range(30)
    }
    found = compare_quality(answers(1), answers(3), rng, similarity=similarity)
    assert found.scores["similarity"].comparison is Comparison.LOWER
    assert found.worse == ("similarity",)


def test_the_figures_of_one_answer() -> None:
    found = answer_quality(Answer("p", "go on " * 10, None, None))
    assert (found.empty, found.cut_off, found.looping, found.words) == (False, None, True, 20)
    assert found.distinct_2 == 2 / 19
    assert found.loop_share == 1.0


def test_cosine() -> None:
    assert cosine([1, 0], [1, 1]) == pytest.approx(0.5**0.5)
    assert cosine([0, 0], [1, 1]) is None
