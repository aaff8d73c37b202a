"""What a ladder of loads shows, in sentences and a table."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.analyse.break_even_load import BreakEven
from orchestrator.analyse.cliff import Cliff
from orchestrator.analyse.ladder import Knee
from orchestrator.analyse.rung import ArmAtRung, Rung
from orchestrator.decide.ladders import Ladder, ladders
from orchestrator.decide.sweep_result import SweepResult


def ladder_sentences(ladder: Ladder) -> Iterator[str]:
    """Break-even load, knees, cliffs: each with what it rests on."""
    yield break_even_sentence(ladder.break_even, ladder.unit)
    for found in ladder.knees:
        yield knee_sentence(found, ladder.unit)
    for cliff in ladder.cliffs:
        whose = f" of the {cliff.arm} arm" if cliff.arm else ""
        yield (
            f"Cliff: {cliff.what}{whose} changes {_change(cliff)} between "
            f"{cliff.below:g} and {cliff.above:g} {ladder.unit}."
        )
    for flat in ladder.plateaus:
        if flat.load is not None:
            yield f"Throughput of the {flat.arm} arm levels off at {flat.load:g}: {flat.why}."


def _change(cliff: Cliff) -> str:
    """A share changes by so much, anything else by a factor."""
    value = cliff.change.value
    return f"by {value:+.2f}" if cliff.what == "slo_attainment" else f"by a factor of {value:.2f}"


def break_even_sentence(found: BreakEven, unit: str) -> str:
    """Where the speedup crosses 1, or why that is not known."""
    if not found.crossings:
        return f"Break-even load of {found.metric}: none found; {found.why}."
    texts = [
        f"{c.load:.3g} {unit} [{c.low:.3g}, {c.high:.3g}] ("
        + ("wins below, loses above" if c.direction == "falling" else "loses below, wins above")
        + ")"
        for c in found.crossings
    ]
    return f"Break-even load of {found.metric}: {'; '.join(texts)}."


def knee_sentence(found: Knee, unit: str) -> str:
    """The highest load that still qualifies."""
    if found.load is None:
        return f"Knee of the {found.arm} arm: none; {found.why}."
    return f"Knee of the {found.arm} arm: {found.load:g} {unit}; {found.why}."


def ladder_section(result: SweepResult) -> Iterator[str]:
    """Markdown of every ladder of a sweep; nothing where loads were not varied."""
    found = ladders(result.trials)
    if not found:
        return
    yield "## Over load"
    yield ""
    for ladder in found:
        yield f"### {ladder.label}"
        yield ""
        yield from (f"- {sentence}" for sentence in ladder_sentences(ladder))
        yield ""
        yield (
            f"| {ladder.unit} | {ladder.metric} | tok/s | TTFT ms | TPOT ms | attainment | state |"
        )
        yield "|---|---|---|---|---|---|---|"
        for rung in ladder.rungs:
            yield _line(rung, ladder)
        yield ""


def _line(rung: Rung, ladder: Ladder) -> str:
    speedup = rung.speedups.get(ladder.metric)
    shown = (
        "–" if speedup is None else f"{speedup.value:.2f}x [{speedup.low:.2f}, {speedup.high:.2f}]"
    )
    arms = [rung.arms.get("baseline"), rung.arms.get("speculative")]
    return (
        f"| {rung.offered:g} | {shown} | {_both(arms, 'output_tok_per_s', 1, 1)} "
        f"| {_both(arms, 'ttft_s', 1e3, 0)} | {_both(arms, 'tpot_s', 1e3, 1)} "
        f"| {_both(arms, 'attainment', 1, 2)} | {_state(rung, arms)} |"
    )


def _both(arms: list[ArmAtRung | None], name: str, scale: float, digits: int) -> str:
    values = [None if arm is None else getattr(arm, name) for arm in arms]
    texts = ["–" if v is None else f"{v.value * scale:.{digits}f}" for v in values]
    return "–" if texts == ["–", "–"] else " → ".join(texts)


def _state(rung: Rung, arms: list[ArmAtRung | None]) -> str:
    if rung.skipped:
        return rung.skipped
    states = [
        str(arm.saturation.regime) if arm is not None and arm.saturation is not None else "–"
        for arm in arms
    ]
    return states[0] if states[0] == states[1] else " → ".join(states)
