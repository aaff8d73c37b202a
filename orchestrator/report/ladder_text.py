"""What a ladder of loads shows, in sentences and a table."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analyse.break_even_load import BreakEven
from orchestrator.analyse.cliff import Cliff
from orchestrator.analyse.ladder import Knee
from orchestrator.analyse.rung import ArmAtRung, Rung
from orchestrator.decide.ladders import Ladder, ladders
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH


def ladder_unit(ladder: Ladder, words: Words = ENGLISH) -> str:
    closed = ladder.trials[0].trial.cell.load.mode == "closed"
    return words("heading.in_flight" if closed else "heading.rps")


def ladder_sentences(ladder: Ladder, words: Words = ENGLISH) -> Iterator[str]:
    """Break-even load, knees, cliffs: each with what it rests on."""
    unit = ladder_unit(ladder, words)
    for even in (ladder.break_even, *ladder.further_break_evens):
        yield break_even_sentence(even, unit, words)
    for found in ladder.knees:
        yield knee_sentence(found, unit, words)
    for cliff in ladder.cliffs:
        yield cliff_sentence(cliff, unit, words)
    for flat in ladder.plateaus:
        if flat.load is not None:
            yield words(
                "ladder.plateau",
                arm=words.sentence(flat.arm),
                load=f"{flat.load:g}",
                why=words.sentence(flat.why),
            )


def cliff_sentence(cliff: Cliff, unit: str, words: Words = ENGLISH) -> str:
    """A share changes by so much, anything else by a factor."""
    what = words(f"figure.{cliff.what}")
    if cliff.arm is not None:
        what = words("ladder.of_arm", what=what, arm=words.sentence(cliff.arm))
    share = cliff.what == "slo_attainment"
    return words(
        "ladder.cliff_share" if share else "ladder.cliff_factor",
        what=what,
        change=f"{cliff.change.value:+.2f}" if share else f"{cliff.change.value:.2f}",
        below=f"{cliff.below:g}",
        above=f"{cliff.above:g}",
        unit=unit,
    )


def break_even_sentence(found: BreakEven, unit: str, words: Words = ENGLISH) -> str:
    """Where the speedup crosses 1, or why that is not known."""
    metric = words(f"figure.{found.metric}")
    if not found.crossings:
        return words("ladder.break_even_none", metric=metric, why=words.sentence(found.why))
    where = crossings_text(found, unit, words)
    return words("ladder.break_even", metric=metric, where=where)


def crossings_text(found: BreakEven, unit: str, words: Words = ENGLISH) -> str:
    """Every load at which 1 is crossed, with its interval and direction."""
    texts = [
        words(
            f"ladder.crossing_{c.direction}",
            load=f"{c.load:.3g}",
            unit=unit,
            low=f"{c.low:.3g}",
            high=f"{c.high:.3g}",
        )
        for c in found.crossings
    ]
    return words("list.clauses").join(texts)


def knee_sentence(found: Knee, unit: str, words: Words = ENGLISH) -> str:
    """The highest load that still qualifies."""
    arm, why = words.sentence(found.arm), words.sentence(found.why)
    if found.load is None:
        return words("ladder.knee_none", arm=arm, why=why)
    return words("ladder.knee", arm=arm, load=f"{found.load:g}", unit=unit, why=why)


def ladder_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Markdown of every ladder of a sweep; nothing where loads were not varied."""
    found = ladders(result.trials)
    if not found:
        return
    yield f"## {words('section.over_load')}"
    yield ""
    for ladder in found:
        yield f"### {ladder.label}"
        yield ""
        yield from (f"- {sentence}" for sentence in ladder_sentences(ladder, words))
        yield ""
        headings = ("tok_per_s", "ttft_ms", "tpot_ms", "attainment", "state")
        yield (
            f"| {ladder_unit(ladder, words)} | {words('figure.' + ladder.metric)} | "
            + " | ".join(words(f"heading.{name}") for name in headings)
            + " |"
        )
        yield "|---|---|---|---|---|---|---|"
        for rung in ladder.rungs:
            yield _line(rung, ladder, words)
        yield ""


def _line(rung: Rung, ladder: Ladder, words: Words) -> str:
    speedup = rung.speedups.get(ladder.metric)
    shown = (
        "–" if speedup is None else f"{speedup.value:.2f}x [{speedup.low:.2f}, {speedup.high:.2f}]"
    )
    arms = [rung.arms.get("baseline"), rung.arms.get("speculative")]
    return (
        f"| {rung.offered:g} | {shown} | {_both(arms, 'output_tok_per_s', 1, 1)} "
        f"| {_both(arms, 'ttft_s', 1e3, 0)} | {_both(arms, 'tpot_s', 1e3, 1)} "
        f"| {_both(arms, 'attainment', 1, 2)} | {rung_state(rung, words)} |"
    )


def _both(arms: list[ArmAtRung | None], name: str, scale: float, digits: int) -> str:
    values = [None if arm is None else getattr(arm, name) for arm in arms]
    texts = ["–" if v is None else f"{v.value * scale:.{digits}f}" for v in values]
    return "–" if texts == ["–", "–"] else " → ".join(texts)


def rung_state(rung: Rung, words: Words = ENGLISH) -> str:
    """Whether the arms kept up with the load, or why it was not run."""
    if rung.skipped:
        return words.sentence(rung.skipped)
    arms = [rung.arms.get("baseline"), rung.arms.get("speculative")]
    states = [
        words(f"regime.{arm.saturation.regime}")
        if arm is not None and arm.saturation is not None
        else "–"
        for arm in arms
    ]
    return states[0] if states[0] == states[1] else " → ".join(states)
