"""Where an engine step's time goes, and the acceptance that would be enough, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analyse.break_even import DISAGREEMENT
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH, trial_label

STAGES = ("draft_s", "verify_s", "sample_s", "overhead_s", "step_s")
_HEADINGS = (
    *("cell", "baseline_step", "draft", "verify", "sample", "overhead", "step", "no_proposal"),
    *("tokens_per_step", "al_star", "predicted", "measured"),
)


def timed_trials(result: SweepResult) -> list[TrialResult]:
    """Comparisons whose engines said what their steps spend their time on."""
    trials = (*result.trials, *result.confirmations)
    return [trial for trial in trials if trial.valid_pairs and trial.step.speculative is not None]


def stage_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Nothing where no trial was measured; a sentence where the engines did not say."""
    measured = [trial for trial in result.trials if trial.valid_pairs]
    if not measured:
        return
    yield f"## {words('stages.title')}"
    yield ""
    timed = timed_trials(result)
    if not timed:
        why = words.sentence(measured[0].step.why or "")
        yield words("stages.not_available", why=why)
        yield ""
        return
    yield words("stages.intro").replace("*", "\\*")
    yield ""
    yield (
        "| " + " | ".join(words(f"stages.{name}") for name in _HEADINGS).replace("*", "\\*") + " |"
    )
    yield "|" + "---|" * len(_HEADINGS)
    for trial in timed:
        yield "| " + " | ".join(stage_cells(trial, words)) + " |"
    yield ""
    said = [f"- {sentence}" for sentence in disagreements(timed, words)]
    if said:
        yield from said
        yield ""


def stage_cells(trial: TrialResult, words: Words = ENGLISH) -> list[str]:
    """One line of the table."""
    step = trial.step
    ours, theirs = step.speculative, step.baseline
    assert ours is not None
    return [
        trial_label(trial.trial, words),
        _ms(theirs.step_s if theirs else None),
        *(_ms(getattr(ours, name)) for name in STAGES),
        "–" if ours.fallback_fraction is None else f"{ours.fallback_fraction:.0%}",
        _number(step.tokens_per_step),
        _number(step.break_even_acceptance_length),
        _number(step.predicted_speedup, "x"),
        _number(trial.decisions["speedup_tpot"].speedup, "x"),
    ]


def disagreements(trials: list[TrialResult], words: Words = ENGLISH) -> Iterator[str]:
    """Cells whose speed is not what their steps say, with what the rest may be."""
    for trial in trials:
        predicted = trial.step.predicted_speedup
        measured = trial.decisions["speedup_tpot"].speedup
        if predicted is None or measured is None:
            continue
        if abs(measured / predicted - 1) > DISAGREEMENT:
            alone = trial.trial.cell.load.concurrency == 1
            yield words(
                "stages.disagrees",
                cell=trial_label(trial.trial, words),
                measured=f"{measured:.2f}",
                predicted=f"{predicted:.2f}",
                why=words("stages.alone" if alone else "stages.together"),
            )


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value * 1e3:.1f}"


def _number(value: float | None, unit: str = "") -> str:
    return "–" if value is None else f"{value:.2f}{unit}"
