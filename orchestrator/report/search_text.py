"""What was searched, what was left out, and what the search found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from orchestrator.decide.objective import CONFIDENCE, Scores
from orchestrator.decide.searched import SearchResult
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH, trial_label
from orchestrator.report.search_plan_text import objectives_text
from orchestrator.spec.search import lower_is_better


def search_sentences(result: SweepResult, words: Words = ENGLISH) -> list[str]:
    """What the search measured, and its answer. Empty without a search."""
    search = result.search
    if search is None:
        return []
    done = len(result.trials)
    said = [
        words(
            "search.measured",
            method=words(f"search.{search.algorithm}"),
            objectives=objectives_text(search.objectives, words),
            done=done,
            all=done + search.not_proposed,
        )
    ]
    if search.over:
        said.append(words("search.over", why=words.sentence(search.over)))
    return [*said, _answer(result, search, words)]


def _answer(result: SweepResult, search: SearchResult, words: Words) -> str:
    slo = "_slo" if search.constraints else ""
    best = next((t for t in result.trials if t.trial.id == search.best), None)
    if best is not None:
        score = score_text(search.scores[best.trial.id], search.objectives[0], words)
        return words(f"search.best{slo}", cell=trial_label(best.trial, words), score=score)
    if search.front:
        return words("search.front_size", count=len(search.front))
    return words(f"search.none{slo}")


def score_text(found: Scores, objective: str, words: Words = ENGLISH) -> str:
    """`speedup_tpot 1.31 (conservative 1.28)`. Raises: KeyError where it is undefined."""
    score = found.objectives[objective]
    return words(
        "search.score",
        name=objective,
        estimate=f"{score.estimate:.4g}",
        conservative=f"{score.conservative:.4g}",
    )


def stopped_trials(result: SweepResult) -> list[TrialResult]:
    """Those that were stopped after at least one pair."""
    return [
        trial
        for trial in result.trials
        if trial.outcome is not None and trial.outcome.status == "stopped" and trial.pairs
    ]


def search_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """The search in Markdown. Nothing without one."""
    search = result.search
    if search is None:
        return
    yield f"## {words('search.title')}"
    yield ""
    for sentence in search_sentences(result, words):
        yield sentence
        yield ""
    yield from _front(result, search, words)
    yield words("search.how", confidence=f"{CONFIDENCE:.0%}")
    yield ""
    stopped = stopped_trials(result)
    if stopped:
        yield words("search.stopped", count=len(stopped))
        yield ""
        for trial in stopped:
            cause = "" if trial.outcome is None else words.sentence(str(trial.outcome.cause))
            yield f"- {trial_label(trial.trial, words)}: {cause}"
        yield ""


def reused_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Which sweeps measured what this one did not have to. Nothing where it measured all."""
    sentences = reused_sentences(result, words)
    if sentences:
        yield f"## {words('reused.title')}"
        yield ""
        for sentence in sentences:
            yield sentence
            yield ""


def reused_sentences(result: SweepResult, words: Words = ENGLISH) -> list[str]:
    counts = Counter(result.reused.values())
    return [
        words("reused.sentence", count=count, sweep=sweep)
        for sweep, count in sorted(counts.items())
    ]


def _front(result: SweepResult, search: SearchResult, words: Words) -> Iterator[str]:
    if not search.front:
        return
    by_id = {trial.trial.id: trial for trial in result.trials}
    yield words("search.front")
    yield ""
    yield f"| {words('heading.cell')} | " + " | ".join(search.objectives) + " |"
    yield "|" + "---|" * (1 + len(search.objectives))
    first = search.objectives[0]
    ordered = sorted(
        search.front,
        key=lambda name: search.scores[name].objectives[first].estimate,
        reverse=not lower_is_better(first),
    )
    for name in ordered:
        scores = [search.scores[name].objectives[objective] for objective in search.objectives]
        values = [f"{score.estimate:.4g} ({score.conservative:.4g})" for score in scores]
        yield "| " + " | ".join([trial_label(by_id[name].trial, words), *values]) + " |"
    yield ""
