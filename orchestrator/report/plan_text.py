"""What would run, as a person and as a machine reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.plan.deployment import DeploymentPair
from orchestrator.plan.plan import Estimate, Notice, Plan, SkippedCell
from orchestrator.plan.trial import Cell, Trial
from orchestrator.report.search_plan_text import search_plan_sentences

_LONGEST_AXIS = 12


def render_plan(plan: Plan, *, width: int = 100) -> str:
    """The plan as text, every line at most `width` wide where words allow."""
    from rich.console import Console

    console = Console(width=width, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        simulated = " (simulated engine: nothing is measured)" if plan.simulated else ""
        console.print(f"Plan of {plan.name}{simulated}", markup=False)
        console.print(_pairs_table(plan.trials))
        console.print(_totals(plan), markup=False)
        if plan.skipped:
            console.print(_skipped_table(plan.skipped))
        for severity, title in _TITLES:
            chosen = [notice for notice in plan.notices if notice.severity == severity]
            if chosen:
                console.print(f"\n{title}", markup=False)
                for notice in chosen:
                    console.print(f"  {notice.rule}: {notice}", markup=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


_TITLES = (
    ("error", "Errors: it cannot run like this"),
    ("warning", "Warnings"),
    ("note", "Notes"),
)


def _pairs_table(trials: Sequence[Trial]) -> Any:
    from rich.table import Table

    table = Table(title="Trials, in order", title_justify="left")
    for name in ("baseline against", "workload", "load", "temperature"):
        table.add_column(name)
    table.add_column("trials", justify="right")
    groups: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        groups[id(trial.pair)].append(trial)
    for group in groups.values():
        by_workload: dict[str, list[Cell]] = defaultdict(list)
        for trial in group:
            by_workload[trial.cell.workload.name].append(trial.cell)
        for index, (workload, cells) in enumerate(by_workload.items()):
            table.add_row(
                _against(group[0].pair, group[0].kind) if index == 0 else "",
                workload,
                _axis(cell.load.label() for cell in cells),
                _axis(f"{cell.sampling.temperature:g}" for cell in cells),
                str(len(cells)),
            )
    return table


def _against(pair: DeploymentPair, kind: str) -> str:
    label = pair.speculative.label()
    options = pair.speculative.speculation.options if pair.speculative.speculation else {}
    shown = " ".join(f"{name}={value}" for name, value in sorted(options.items()))
    return f"{'A/A control: ' if kind == 'aa_control' else ''}{label} {shown}".strip()


def _axis(labels: Iterable[str]) -> str:
    """Different values in order; a unit that all of them carry stands once, at the end."""
    values = list(dict.fromkeys(labels))
    more = f", … {len(values)} in all" if len(values) > _LONGEST_AXIS else ""
    values = values[:_LONGEST_AXIS]
    units = {value.partition(" ")[2] for value in values}
    if len(units) == 1 and (unit := units.pop()):
        return ", ".join(value.partition(" ")[0] for value in values) + f"{more} {unit}"
    return ", ".join(values) + more


def _totals(plan: Plan) -> str:
    estimate = plan.estimate
    least, most = estimate.device_hours
    kind = {"GPU": "GPU-hours", "host": "host-hours"}[estimate.device]
    at_once = f", {estimate.pairs_at_once} pairs at once" if estimate.pairs_at_once > 1 else ""
    return (
        f"{len(plan.trials)} trials, {plan.engine_starts} engine starts, "
        f"{len(plan.skipped)} cells left out\n"
        f"Estimated {duration(estimate.least_s)} to {duration(estimate.most_s)}{at_once}, "
        f"{least:.2g} to {most:.2g} {kind}\n"
        f"  {estimate.assumption}\n"
        f"Control: {plan.control}"
        + "".join(
            f"\n{line}" for line in (search_plan_sentences(plan.search) if plan.search else ())
        )
    )


def duration(seconds: float) -> str:
    """Seconds as a person says them: `45 s`, `7 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def _skipped_table(skipped: Sequence[SkippedCell]) -> Any:
    from rich.table import Table

    table = Table(title="Left out", title_justify="left")
    table.add_column("cells", justify="right")
    for name in ("which", "rule", "reason"):
        table.add_column(name)
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for item in skipped:
        groups[(item.rule, item.reason)].append(item.cell)
    for (rule, reason), cells in groups.items():
        table.add_row(str(len(cells)), _which(cells), rule, reason)
    return table


def _which(cells: Sequence[Cell]) -> str:
    if len(cells) == 1:
        return cells[0].label()
    drafts = {f"({cell.draft})" if cell.draft else "" for cell in cells}
    methods = _axis(cell.method for cell in cells) + (drafts.pop() if len(drafts) == 1 else "")
    lengths = _axis(str(cell.speculation_length) for cell in cells)
    return f"{methods} K={lengths} · {_axis(cell.workload.name for cell in cells)}"


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON: trials with their ids, what is left out, notices, the estimate."""
    return {
        "name": plan.name,
        "simulated": plan.simulated,
        "seed": plan.seed,
        "engine_starts": plan.engine_starts,
        "deployments": [
            {"key": deployment.key, "label": deployment.label(), **deployment.as_dict()}
            for deployment in plan.deployments
        ],
        "trials": [_trial(trial) for trial in plan.trials],
        "control": plan.control,
        "skipped": [
            {"rule": item.rule, "reason": item.reason, "cell": asdict(item.cell)}
            for item in plan.skipped
        ],
        **{
            f"{severity}s": [_notice(n) for n in plan.notices if n.severity == severity]
            for severity, _ in _TITLES
        },
        "estimate": _estimate(plan.estimate),
        "search": None if plan.search is None else asdict(plan.search),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "id": trial.id,
        "kind": trial.kind,
        "label": trial.label(),
        "baseline": trial.pair.baseline.key,
        "speculative": trial.pair.speculative.key,
        "seed": trial.seed,
        "cell": asdict(trial.cell),
    }


def _notice(notice: Notice) -> dict[str, str | None]:
    return {"rule": notice.rule, "text": notice.text, "hint": notice.hint}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    least, most = estimate.device_hours
    return {
        "duration_s": [estimate.least_s, estimate.most_s],
        "engine_start_s": estimate.start_s,
        "device_hours": [least, most],
        "device": estimate.device,
        "pairs_at_once": estimate.pairs_at_once,
        "assumption": estimate.assumption,
    }
