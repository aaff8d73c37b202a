"""Repetition: what makes a drafter that looks back find itself."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.run.suites.boundary_cases.case import (
    LONG_TIMEOUT_S,
    BoundaryCase,
    completion,
    one,
)
from orchestrator.run.suites.boundary_cases.target import Target

REPETITIONS = 10_000
LOOP_TOKENS = 48

PATTERNS: tuple[tuple[str, str], ...] = (
    ("period_1", "ha " * 120),
    ("period_2", "tick tock " * 60),
    ("period_3", "1 2 3 " * 60),
    ("period_5", "one two three four five " * 30),
    ("growing", " ".join("a" * n for n in range(1, 40))),
    ("nested", ("( " * 6 + ") " * 6) * 10),
    ("almost", "".join(f"row {i % 7}: value {i % 3}, value {i % 3}\n" for i in range(40))),
    ("match_at_end", "the cat sat on the mat. the dog ate. the cat sat on the"),
    ("no_match", "zq xj vk wy"),
    ("shorter_than_any_ngram", "x"),
)
"""Periods around the usual draft lengths; matches everywhere, at the very end, and nowhere."""


def cases(target: Target) -> Iterator[BoundaryCase]:
    yield BoundaryCase(
        "ngram_loops",
        "answer",
        lambda model: tuple(
            completion(model, text, max_tokens=LOOP_TOKENS, ignore_eos=True) for _, text in PATTERNS
        ),
        parts=tuple(name for name, _ in PATTERNS),
    )
    yield one(
        "ngram_loop_answers",
        "answer",
        lambda m: completion(
            m, "ha " * 64, max_tokens=target.longest_answer(64), ignore_eos=True,
            repetition_penalty=0.05, timeout_s=LONG_TIMEOUT_S,
        ),
    )  # fmt: skip
    yield one(
        "ten_thousand_repetitions",
        "answer" if target.fits(REPETITIONS, 8) else "refuse",
        lambda m: completion(m, [target.token_id] * REPETITIONS, timeout_s=LONG_TIMEOUT_S),
    )
    yield one(
        "ten_thousand_words",
        "either",
        lambda m: completion(m, " the" * REPETITIONS, timeout_s=LONG_TIMEOUT_S),
    )
