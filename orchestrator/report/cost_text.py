"""What a token costs in each arm, in words: a table of cells, and what the draft adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.decide.cost import CostAtLoad, DeploymentCost, costs
from orchestrator.decide.resources import needs_said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.plan.trial import LoadPoint
from orchestrator.records import ARMS, Arm
from orchestrator.report.ladder_text import crossings_text
from orchestrator.report.language import Words
from orchestrator.report.row import ENGLISH, load_text
from orchestrator.spec.goals import Cost


@dataclass(frozen=True)
class CostRow:
    """One cell of a deployment, ready to show."""

    trial_id: str
    cell: str
    texts: tuple[str, ...]
    """As the headings of its view."""


@dataclass(frozen=True)
class CostView:
    """One deployment beside its baseline."""

    draft: str
    headings: tuple[str, ...]
    """Of `CostRow.texts`."""
    rows: tuple[CostRow, ...]
    sentences: tuple[str, ...]
    """What it takes besides time, the load and the volume from which it pays for itself."""


def cost_basis(result: SweepResult, words: Words = ENGLISH) -> tuple[str, ...]:
    """The price and whose tokens count; without a price that there is none, and no money at all."""
    found = costs(result)
    if not any(cost.at for cost in found):
        return (words("cost.nothing_measured"),)
    one = found[0]
    price = words("cost.no_price")
    if one.device_hour is not None:
        price = words(
            "cost.price",
            price=f"{one.device_hour:,.2f} {one.currency}",
            devices=words("cost.devices", count=one.devices),
        )
    return price, words("cost.within_slo" if one.within_slo else "cost.every_token")


def cost_views(result: SweepResult, words: Words = ENGLISH) -> list[CostView]:
    """One view for every deployment that was measured, in the plan's order."""
    operations = _operations(result, words)
    loads = {trial.trial.id: trial.trial.cell.load for trial in result.trials}
    return [_view(cost, operations, loads, words) for cost in costs(result) if cost.at]


def _view(
    cost: DeploymentCost, operations: str, loads: Mapping[str, LoadPoint], words: Words
) -> CostView:
    factors = [f for f in (cost.at[0].sensitivity if cost.at else ()) if f != 1.0]
    headings = [words("cost.goodput"), words("cost.ratio")]
    if cost.device_hour is not None:
        headings.append(words("cost.per_mtok", currency=cost.currency or ""))
        headings += [words("cost.at_factor", factor=f"{factor:g}") for factor in factors]
    facts, _ = needs_said(cost.needs["baseline"], cost.needs["speculative"])
    sentences = [words("cost.takes", facts=tuple(facts))] if facts else []
    sentences += _over_load(cost, loads, words)
    if cost.device_hour is not None:
        sentences += [operations, *_volume(cost, factors, words)]
    return CostView(
        draft=cost.draft,
        headings=tuple(headings),
        rows=tuple(_row(at, cost, factors, words) for at in cost.at),
        sentences=tuple(sentences),
    )


def _row(at: CostAtLoad, cost: DeploymentCost, factors: Sequence[float], words: Words) -> CostRow:
    ratio = at.cost_ratio
    texts = [
        _both(at.goodput_tok_per_s, "{:,.1f}"),
        "–" if ratio is None else f"x{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]",
    ]
    if cost.device_hour is not None:
        texts.append(_both(at.cost_per_mtok, "{:,.3g}"))
        texts += [_both(at.sensitivity[factor], "{:,.3g}") for factor in factors]
    return CostRow(at.trial_id, cell_text(at, words), tuple(texts))


def cell_text(at: CostAtLoad, words: Words) -> str:
    return f"{at.workload} · {load_text(at.load, words)} · T={at.temperature:g}"


def _both(values: Mapping[Arm, float | None], form: str) -> str:
    return " → ".join("–" if (v := values[arm]) is None else form.format(v) for arm in ARMS)


def _over_load(cost: DeploymentCost, loads: Mapping[str, LoadPoint], words: Words) -> Iterator[str]:
    """From which load on the draft pays for itself, by ladder."""
    at = {one.trial_id: one for one in cost.at}
    for trial_id, even in cost.pays_from.items():
        one = at[trial_id]
        where = f"{one.workload}, T={one.temperature:g}"
        if not even.crossings:
            yield words("cost.no_crossing", where=where, why=words.sentence(even.why))
            continue
        unit = words("axis.in_flight" if loads[trial_id].mode == "closed" else "axis.rps")
        yield words("cost.crossing", where=where, loads=crossings_text(even, unit, words))


def _operations(result: SweepResult, words: Words) -> str:
    """The questionnaire as it was answered; what was not answered is not zero."""
    given = result.manifest["experiment"].get("cost")
    operations = None if given is None else Cost.model_validate(given).operations
    if operations is None:
        return words("cost.work_not_stated")
    answers = []
    for name in ("integration_hours", "upkeep_hours_per_month", "incident_hours_per_month"):
        hours = getattr(operations, name)
        shown = words("cost.not_stated") if hours is None else words("cost.hours", hours=hours)
        answers.append(words(f"cost.{name}", hours=shown, months=operations.months))
    return words("cost.work", answers=tuple(answers))


def _volume(cost: DeploymentCost, factors: Sequence[float], words: Words) -> Iterator[str]:
    """From how many tokens a month the saving pays for people's work, at each price."""
    if cost.work_per_month is None:
        return
    yield words(
        "cost.work_costs",
        hours=cost.work_hours_per_month or 0.0,
        money=f"{cost.work_per_month:,.2f} {cost.currency}",
    )
    told = [at for at in cost.at if at.break_even_mtok_per_month is not None]
    if not told:
        yield words("cost.work_never_paid")
    for at in told:
        volume, rate = at.break_even_mtok_per_month, at.break_even_tok_per_s
        assert volume is not None and rate is not None
        # The saving of a token is in proportion to the price, the work is not.
        others = tuple(
            words("cost.volume_at", factor=factor, volume=f"{volume / factor:,.3g}")
            for factor in factors
        )
        yield words(
            "cost.volume",
            cell=cell_text(at, words),
            volume=f"{volume:,.3g}",
            rate=f"{rate:,.3g}",
            measured=_both(at.goodput_tok_per_s, "{:,.1f}").rpartition(" ")[2],
            others=f" ({words('list.clauses').join(others)})" if others else "",
        )


def cost_section(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """Markdown: the basis, then a table and its sentences for every deployment."""
    if not result.trials:
        return
    yield f"## {words('page.cost')}"
    yield ""
    yield " ".join(cost_basis(result, words))
    yield ""
    for view in cost_views(result, words):
        yield f"### {view.draft}"
        yield ""
        yield " | ".join(["| " + words("heading.cell"), *view.headings]) + " |"
        yield "|---" * (1 + len(view.headings)) + "|"
        for row in view.rows:
            link = f"[{row.cell}]({row.trial_id}/)"
            yield " | ".join(["| " + link, *row.texts]) + " |"
        yield ""
        yield from (f"- {sentence}" for sentence in view.sentences)
        yield ""
