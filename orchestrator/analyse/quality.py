"""Equally good where they may differ: the quality of two arms' answers, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from orchestrator.analyse.agreement import Answer
from orchestrator.analyse.answer_ending import cut_off, empty, open_code_block, refuses
from orchestrator.analyse.key_information import kept_information
from orchestrator.analyse.language import language
from orchestrator.analyse.paired_means import MeanComparison, compare_means
from orchestrator.analyse.paired_outcomes import (
    Comparison,
    OutcomeComparison,
    compare_outcomes,
    majority,
    paired_counts,
)
from orchestrator.analyse.paired_ratio import RatioComparison, compare_ratio
from orchestrator.analyse.repetition import compression_ratio, distinct_n, loop_share
from orchestrator.analyse.words import words

_T = TypeVar("_T", OutcomeComparison, MeanComparison, RatioComparison)

LOOPING_SHARE = 0.25
"""An answer with this share of its words inside one loop of three or more repeats is looping."""


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """Figures of one answer by itself; None where undefined."""

    empty: bool
    cut_off: bool | None
    open_code_block: bool
    refuses: bool
    looping: bool
    language: str | None
    distinct_2: float | None
    loop_share: float | None
    compression_ratio: float | None
    words: int


@dataclass(frozen=True, slots=True)
class QualityReport:
    """The arms side by side; every name as in `docs/quality.md`."""

    prompts: int
    rates: Mapping[str, OutcomeComparison]
    """Shares of answers that are empty, cut_off, open_code_block, refuses, looping; and against
    the floor: off_language."""
    scores: Mapping[str, MeanComparison]
    """distinct_2, and against the floor: kept_information, similarity."""
    lengths: RatioComparison
    lengths_from: str
    compression: RatioComparison
    """Of answers with a compression ratio (200 bytes and more) in both arms."""
    worse: tuple[str, ...]
    """Figures by which the speculative arm is worse."""
    undecided: tuple[str, ...]


def answer_quality(answer: Answer) -> AnswerQuality:
    """The figures of one answer."""
    units = words(answer.text)
    share = loop_share(units)
    return AnswerQuality(
        empty=empty(answer.text),
        cut_off=cut_off(answer.finish_reason),
        open_code_block=open_code_block(answer.text),
        refuses=refuses(answer.text),
        looping=share is not None and share >= LOOPING_SHARE,
        language=language(answer.text),
        distinct_2=distinct_n(units, 2),
        loop_share=share,
        compression_ratio=compression_ratio(answer.text),
        words=len(units),
    )


def compare_quality(
    baseline: Iterable[Answer],
    speculative: Iterable[Answer],
    rng: np.random.Generator,
    *,
    relaunched: Iterable[Answer] = (),
    similarity: Mapping[str, tuple[float, float]] | None = None,
    failed: tuple[Mapping[str, bool], Mapping[str, bool]] | None = None,
    margin: float = 0.05,
    level: float = 0.05,
    difference_level: float | None = None,
) -> QualityReport:
    """Every figure of both arms, each with a paired test and the equivalence margin.

    A prompt that was asked several times counts once: by the majority of its answers for a rate
    (a tie: left out), by their mean for a score or a length. The n-th answers of two arms are put
    side by side; in what they are compared with each other, the arms must not share seeds.

    `relaunched` are a relaunched baseline's answers: how much of its own key information the
    baseline keeps when it is asked again, and how often it changes its language, are the floor for
    what the speculative arm does (without them, these two figures are left out). `similarity`
    maps a prompt to the cosine similarities to the baseline's answer of (the relaunched baseline's,
    the speculative arm's) answer. `failed` says of each arm's prompts whether the request failed.
    `difference_level` (default `level`) is shared out over the figures (Bonferroni), so that the
    chance of any worse figure among equal arms is at most that; "no practical difference" is
    claimed figure by figure, at `level`.
    """
    mine, its = _by_prompt(baseline), _by_prompt(speculative)
    prompts = [prompt for prompt in mine if prompt in its]
    first = {prompt: [answer_quality(a) for a in mine[prompt]] for prompt in prompts}
    second = {prompt: [answer_quality(a) for a in its[prompt]] for prompt in prompts}
    floor = _by_prompt(relaunched)
    figures = len(_RATES) + 3 + 2 * bool(floor) + bool(similarity) + bool(failed)
    strict = (difference_level or level) / figures

    def rated(a: Mapping[str, bool | None], b: Mapping[str, bool | None]) -> OutcomeComparison:
        counts = paired_counts(a, b)
        return _both_levels(
            lambda at: compare_outcomes(counts, margin=margin, level=at), level, strict
        )

    rates = {name: rated(_majorities(first, of), _majorities(second, of))
             for name, of in _RATES.items()}  # fmt: skip
    if failed:
        rates["failed"] = rated(*failed)

    def scored(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> MeanComparison:
        return _both_levels(
            lambda at: compare_means(a, b, rng, margin=margin, level=at, permutations=_draws(at)),
            level,
            strict,
        )

    def distinct(of: Mapping[str, Sequence[AnswerQuality]]) -> dict[str, float | None]:
        return {prompt: _mean(q.distinct_2 for q in of[prompt]) for prompt in prompts}

    scores = {"distinct_2": scored(distinct(first), distinct(second))}
    if floor:
        known = [prompt for prompt in prompts if prompt in floor]
        again = {prompt: [answer_quality(a) for a in floor[prompt]] for prompt in known}
        rates["off_language"] = rated(_off_language(first, again), _off_language(first, second))

        def kept(other: Mapping[str, Sequence[Answer]]) -> dict[str, float | None]:
            return {
                p: _mean(
                    kept_information(a.text, b.text).share
                    for a, b in zip(mine[p], other[p], strict=False)
                )
                for p in known
            }

        scores["kept_information"] = scored(kept(floor), kept(its))
    if similarity:
        scores["similarity"] = scored(
            {p: pair[0] for p, pair in similarity.items()},
            {p: pair[1] for p, pair in similarity.items()},
        )
    tokens = all(
        answer.token_ids is not None for a in (mine, its) for p in prompts for answer in a[p]
    )

    def ratio(a: Sequence[float], b: Sequence[float]) -> RatioComparison:
        return _both_levels(
            lambda at: compare_ratio(a, b, rng, margin=margin, level=at, permutations=_draws(at)),
            level,
            strict,
        )

    lengths = ratio(
        [_length(mine[p], tokens) for p in prompts], [_length(its[p], tokens) for p in prompts]
    )
    shrunk = [
        (a, b)
        for p in prompts
        if (a := _mean(q.compression_ratio for q in first[p])) is not None
        and (b := _mean(q.compression_ratio for q in second[p])) is not None
    ]
    compression = ratio([a for a, _ in shrunk], [b for _, b in shrunk])
    verdicts = {name: rate.comparison for name, rate in rates.items()}
    verdicts |= {name: score.comparison for name, score in scores.items()}
    bad = dict.fromkeys(rates, Comparison.HIGHER) | dict.fromkeys(scores, Comparison.LOWER)
    worse = [name for name, verdict in verdicts.items() if verdict is bad[name]]
    if lengths.comparison in (Comparison.HIGHER, Comparison.LOWER):
        worse.append("lengths")
    if compression.comparison is Comparison.HIGHER:
        worse.append("compression")
    verdicts |= {"lengths": lengths.comparison, "compression": compression.comparison}
    return QualityReport(
        prompts=len(prompts),
        rates=rates,
        scores=scores,
        lengths=lengths,
        lengths_from="tokens" if tokens else "characters",
        compression=compression,
        worse=tuple(worse),
        undecided=tuple(n for n, verdict in verdicts.items() if verdict is Comparison.CANNOT_TELL),
    )


_RATES: Mapping[str, Callable[[AnswerQuality], bool | None]] = {
    "empty": lambda q: q.empty,
    "cut_off": lambda q: q.cut_off,
    "open_code_block": lambda q: q.open_code_block,
    "refuses": lambda q: q.refuses,
    "looping": lambda q: q.looping,
}


def cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Cosine similarity of two embedding vectors. Undefined: None when either is 0."""
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 and math.isfinite(norms) else None


def _off_language(
    baseline: Mapping[str, Sequence[AnswerQuality]], other: Mapping[str, Sequence[AnswerQuality]]
) -> dict[str, bool | None]:
    """Which answers are in another language than the baseline's; None where either is unclear."""
    return {
        prompt: majority(
            q.language != its.language
            for q, its in zip(mine, other[prompt], strict=False)
            if None not in (q.language, its.language)
        )
        for prompt, mine in baseline.items()
        if prompt in other
    }


def _majorities(
    answers: Mapping[str, Sequence[AnswerQuality]], of: Callable[[AnswerQuality], bool | None]
) -> dict[str, bool | None]:
    return {
        prompt: majority(known for q in repeats if (known := of(q)) is not None)
        for prompt, repeats in answers.items()
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _both_levels(compare: Callable[[float], _T], level: float, strict: float) -> _T:
    """Equality is claimed at `level`; a difference only at the level shared out."""
    usual = compare(level)
    if usual.comparison in (Comparison.HIGHER, Comparison.LOWER):
        return compare(strict)
    return usual


def _draws(level: float) -> int:
    """Enough sign flips that a p-value at the level is well above the smallest possible."""
    return max(1999, math.ceil(20 / level))


def _length(answers: Sequence[Answer], tokens: bool) -> float:
    return sum(
        len(a.token_ids) if tokens and a.token_ids is not None else len(a.text) for a in answers
    ) / len(answers)


def _by_prompt(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.prompt_id, []).append(answer)
    return found
