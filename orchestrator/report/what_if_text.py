"""Speedup over acceptance, speculation length and batch size, of drafts that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH

_HEADINGS = ("workload", "cost", "length", "batch", "asked", "accepted", "got", "al_star",
             "speedup")  # fmt: skip


def what_if_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Nothing where nothing was supposed."""
    measured = [trial for trial in result.what_ifs if trial.valid_pairs]
    if not measured:
        return
    yield f"## {words('what_if.title')}"
    yield ""
    yield words("what_if.intro").replace("*", "\\*")
    yield ""
    head = (words(f"what_if.{name}").replace("*", "\\*") for name in _HEADINGS)
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(_HEADINGS)
    for trial in sorted(measured, key=_order):
        yield "| " + " | ".join(_cells(trial)) + " |"
    yield ""


def supposed(trial: TrialResult) -> tuple[float, float]:
    """(acceptance per token, seconds per token of a draft) that the trial supposes."""
    speculation = trial.trial.pair.speculative.speculation
    assert speculation is not None, trial.trial.id
    options = speculation.options
    return float(options["acceptance"]), float(options["draft_cost_s"])


def _order(trial: TrialResult) -> tuple[object, ...]:
    acceptance, cost_s = supposed(trial)
    cell = trial.trial.cell
    return cell.workload.name, cost_s, cell.speculation_length, cell.batch_size, acceptance


def _cells(trial: TrialResult) -> list[str]:
    acceptance, cost_s = supposed(trial)
    cell, step = trial.trial.cell, trial.step
    decision = trial.decisions["speedup_tpot"]
    accepted = trial.figures["speculative"].get("acceptance_rate")
    speedup = "–"
    if decision.speedup is not None:
        speedup = f"{decision.speedup:.2f}x"
        if decision.low is not None and decision.high is not None:
            speedup += f" [{decision.low:.2f}, {decision.high:.2f}]"
    return [
        cell.workload.name,
        f"{cost_s * 1e3:g}",
        str(cell.speculation_length),
        str(cell.batch_size),
        f"{acceptance:g}",
        "–" if accepted is None else f"{accepted:.2f}",
        "–" if step.tokens_per_step is None else f"{step.tokens_per_step:.2f}",
        "–" if step.break_even_acceptance_length is None
        else f"{step.break_even_acceptance_length:.2f}",
        speedup,
    ]  # fmt: skip
