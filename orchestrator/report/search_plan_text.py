"""What would be searched, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.plan.plan import SearchPlan
from orchestrator.report.language import Words
from orchestrator.spec.search import lower_is_better

_ENGLISH = Words()


def objectives_text(objectives: Sequence[str], words: Words = _ENGLISH) -> str:
    """`high output_tok_per_s against low tpot_mean_s`."""
    sides = [
        words("search.low" if lower_is_better(name) else "search.high", name=name)
        for name in objectives
    ]
    return words("search.against").join(sides)


def search_plan_sentences(search: SearchPlan) -> Iterator[str]:
    """What would be searched, before anything is started."""
    limits = [
        f"{search.trials} trials" if search.trials is not None else None,
        f"{search.minutes:g} minutes" if search.minutes is not None else None,
        f"{search.device_hours:g} device-hours" if search.device_hours is not None else None,
    ]
    given = ", ".join(limit for limit in limits if limit) or "none"
    preset = f" (preset {search.preset})" if search.preset else ""
    yield (
        f"Search{preset}: {_ENGLISH(f'search.{search.algorithm}')}, for "
        f"{objectives_text(search.objectives)}; at most {search.most_trials} of "
        f"{search.candidates} cells; budget: {given}"
    )
    if search.scheduler != "none":
        yield f"  {search.scheduler} stops cells that fall behind, after every pair"
    if search.constraints:
        bounds = ", ".join(f"{name} <= {bound:g}" for name, bound in search.constraints.items())
        yield f"  the best has to keep to {bounds}"
    if search.first:
        yield f"  tried first: {len(search.first)} cells"
