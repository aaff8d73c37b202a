"""The notes that MLflow shows on runs, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.analyse.pairs import SPEEDUPS
from orchestrator.decide.conclusion import Conclusion, Kind
from orchestrator.decide.conclusions import conclusions
from orchestrator.decide.recommendation import recommend
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Decision
from orchestrator.report.row import speedup_text, verdict_text
from orchestrator.report.said import text_of

NOTE_LIMIT = 7500
"""Characters; MLflow refuses a tag of more than 8,000."""
SHOWN = (Kind.EFFECT, Kind.SWITCH_OFF, Kind.CHOICE)
ARTIFACTS = ("report*.md", "report*.html", "decision.json", "deploy.yaml", "sweep.json")
"""What of a sweep's folder the parent run holds, where it is there."""


PLOTS = "plots/"


def _is_plot(path: str) -> bool:
    return path.startswith(PLOTS)


def sweep_artifacts(folder: Path) -> dict[str, Path]:
    """Artifact path -> file: reports, decision, deployable configuration, plots."""
    files = [path for pattern in ARTIFACTS for path in sorted(folder.glob(pattern))]
    plots = sorted((folder / PLOTS).glob("*.png"))
    return {path.relative_to(folder).as_posix(): path for path in (*files, *plots)}


def closing_note(result: SweepResult, artifacts: Mapping[str, Path]) -> str:
    """The parent run's description once the sweep has ended: verdict first."""
    return _cut(_closing(result, artifacts))


def _closing(result: SweepResult, artifacts: Mapping[str, Path]) -> Iterator[str]:
    found = conclusions(result)
    yield f"# {result.name}"
    description = result.manifest["experiment"].get("description")
    if description:
        yield str(description)
    if result.simulated:
        yield "**SIMULATED: nothing was measured.**"
    yield f"**{text_of(recommend(result).reason)}** {text_of(found[0].message)}"
    shown = [path for path in artifacts if path != "sweep.json" and not _is_plot(path)]
    if shown:
        names = ", ".join(f"`{path}`" for path in shown)
        pictures = f", and pictures under `{PLOTS}`" if any(map(_is_plot, artifacts)) else ""
        yield f"Report and decision are artifacts of this run: {names}{pictures}."
    yield (
        "Each child run is one cell. Filter with `tags.verdict = 'faster'`, sort by "
        "`speedup_throughput_low`, or select the children and *Compare*. More search strings: "
        "docs/mlflow.md. `pair/…` metrics have one step per pair."
    )
    yield "\n".join(_conclusions(found))


def _conclusions(found: Sequence[Conclusion]) -> Iterator[str]:
    yield from (f"- {text_of(c.message)}" for c in found if c.kind in SHOWN)
    yield from (f"- Risk: {text_of(c.message)}" for c in found if c.kind is Kind.RISK)


def trial_note(result: TrialResult, decision: Decision, manifest: Mapping[str, Any]) -> str:
    """A child run's description: verdict, every speedup, acceptance, what to know, records."""
    return _cut(_trial(result, decision, manifest))


def _trial(result: TrialResult, decision: Decision, manifest: Mapping[str, Any]) -> Iterator[str]:
    yield f"**{verdict_text(result, decision)}** — {decision.metric} {speedup_text(decision)}"
    if result.simulated:
        yield "SIMULATED: nothing was measured."
    if result.valid_pairs:
        lines = [f"| {name} | {speedup_text(result.decisions[name])} |" for name in SPEEDUPS]
        yield "\n".join(["| figure | speedup [interval] |", "|---|---|", *lines])
    if result.acceptance_length is not None:
        yield (
            f"Acceptance length {result.acceptance_length:.2f}; "
            f"{len(result.valid_pairs)} of {len(result.pairs)} pairs count."
        )
    if decision.notes:
        yield "\n".join(f"- {note}" for note in decision.notes)
    if result.outcome is not None and result.outcome.cause:
        yield f"Failure: {result.outcome.cause}"
    yield f"Records: artifact `trial`, and `{manifest.get('folder')}/{result.trial.id}`."


def _cut(parts: Iterator[str]) -> str:
    text = "\n\n".join(part for part in parts if part)
    return (
        text if len(text) <= NOTE_LIMIT else text[: NOTE_LIMIT - 30] + "\n\n…(cut; see the report)"
    )
