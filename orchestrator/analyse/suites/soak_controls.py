"""The controls at a soak's end: what an emptied cache, and what a restart, brings back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.analyse.soak.cure import Cure, CureFound, cure_of
from orchestrator.analyse.soak.facts import SoakFacts
from orchestrator.analyse.soak.figures import judged_names
from orchestrator.run.suites.record import CaseResult, CaseStatus

CONTROLS = {"flush": "flushed", "restart": "restarted"}
"""Name of a control, and the phase of the windows after it."""
ALWAYS = ("output_tok_per_s", "tpot_p50_s", "acceptance_length", "process_rss_bytes")


def control_cases(
    facts: SoakFacts, drifted: Sequence[str], confidence: float
) -> Iterator[CaseResult]:
    """One case a control. It is no finding whether it cures: the trend before it is."""
    for control, phase in CONTROLS.items():
        if not facts.settings.get(f"{control}_control"):
            continue
        must = f"shows whether a {control} brings back what the hours took"
        if (why := facts.unavailable.get(control)) is not None:
            yield CaseResult(control, CaseStatus.UNSUPPORTED, must, why)
            continue
        if not facts.of(phase):
            yield CaseResult(control, CaseStatus.NOT_RUN, must, "the soak ended before it")
            continue
        names = list(dict.fromkeys([*drifted, *ALWAYS]))
        found = {
            name: one
            for name in names
            if (one := _cure(facts, name, phase, confidence)) is not None
        }
        cured = [name for name in drifted if name in found and found[name].cure is Cure.CURES]
        yield CaseResult(
            case=control,
            status=_status([found[name] for name in drifted if name in found], found),
            must=must,
            seen="; ".join(f"{name}: {one.cure.value}" for name, one in found.items())
            or "no figure was seen before and after",
            evidence={"cures": cured},
        )


def _cure(facts: SoakFacts, name: str, phase: str, confidence: float) -> CureFound | None:
    """Of the speculative arm, where the figure was seen on both sides."""
    figure = judged_names([name]).get(name)
    after = facts.values(name, "speculative", phase)
    if figure is None or not after:
        return None
    seconds = float(facts.settings["control_s"])
    return cure_of(
        facts.edge(name, "speculative", first=True, seconds=seconds),
        facts.edge(name, "speculative", first=False, seconds=seconds),
        after,
        higher_is_better=figure.higher_is_better,
        confidence=confidence,
        margin=float(facts.settings["margin"]),
    )


def _status(drifted: Sequence[CureFound], found: dict[str, CureFound]) -> CaseStatus:
    open_ = [one.cure is Cure.CANNOT_TELL for one in drifted]
    if not found or (open_ and all(open_)):
        return CaseStatus.CANNOT_TELL
    return CaseStatus.PASS
