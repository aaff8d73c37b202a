"""Boundary and abnormal input, judged: where is speculation worse than the baseline?

A difference counts when every repeat of the case shows it. What neither arm does right is shown,
but is no finding, except that an engine died.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analyse.exact_tests import fisher
from orchestrator.analyse.suites.kind import LEFT, Kind, kind_of
from orchestrator.analyse.suites.reproduction import reproduction
from orchestrator.plan.deployment import deployment_from
from orchestrator.records import ARMS, Arm
from orchestrator.run.suites.after_case import CANARY_PART
from orchestrator.run.suites.record import (
    Asked,
    CaseResult,
    CaseStatus,
    Health,
    Subject,
    SuiteRecord,
    SuiteResult,
)

CROWD = 20
"""From so many requests in one case on, shares are compared, not requests."""
CROWD_LEVEL = 0.001
SLOWER_RATIO = 3.0
SLOWER_S = 2.0
"""Slower by this factor *and* these seconds, in the fastest repeat against the slowest: odd input
may cost more in either arm, and a machine has other things to do."""
KV_FRACTION = 0.002
"""Of the KV cache: more than this still in use after a case has not come back."""
MEMORY_BYTES = 256 * 2**20
"""What the engine's processes may grow by in one case beyond what the baseline's do."""

FINDINGS = (CaseStatus.FAIL, CaseStatus.REFUSED, CaseStatus.DIFFERS, CaseStatus.CRASHED)

MUST = {
    "answer": "is answered, as by the baseline",
    "refuse": "is refused with a reason, as by the baseline",
    "either": "is answered or refused, as by the baseline",
}


@dataclass(frozen=True)
class _Seen:
    """One arm's side of one case."""

    repeats: tuple[tuple[Asked, ...], ...]
    """Canaries left out."""
    kinds: tuple[tuple[tuple[Kind, str], ...], ...]
    health: tuple[Health, ...]
    kv_left: float | None
    """Growth of the KV cache's use over the case, from rest to rest."""
    grown_bytes: float | None

    @property
    def died(self) -> bool:
        return any(not look.healthy for look in self.health)


def judge_boundary(record: SuiteRecord) -> SuiteResult:
    """Every case of a record, in its order."""
    told: Mapping[str, Mapping[str, Any]] = record.extra.get("cases", {})
    arms = {arm: _by_case(record, arm) for arm in ARMS}
    results = tuple(
        _judge(name, facts, {arm: seen.get(name) for arm, seen in arms.items()})
        for name, facts in told.items()
    )
    found = sum(r.status in FINDINGS for r in results)
    judged = sum(r.status is not CaseStatus.NOT_RUN for r in results)
    if found:
        verdict = f"{found} finding{'s' if found > 1 else ''} in {judged} cases"
    elif record.complete and judged:
        verdict = f"no findings in {judged} cases"
    else:
        verdict = f"no findings in the {judged} cases that were run"
    return SuiteResult(
        suite=record.suite,
        pair_key=record.pair_key,
        label=_label(record.speculative),
        verdict=verdict,
        ok=False if found else (True if record.complete and judged else None),
        cases=results,
        metrics={
            "boundary_cases": float(judged),
            "boundary_findings": float(found),
            "boundary_crashes_baseline": _crashes(results, "baseline"),
            "boundary_crashes_speculative": _crashes(results, "speculative"),
        },
        notes=record.notes,
        complete=record.complete,
        simulated=record.simulated,
    )


def _judge(name: str, facts: Mapping[str, Any], seen: Mapping[Arm, _Seen | None]) -> CaseResult:
    must, timed = str(facts["must"]), bool(facts["timed"])
    baseline, speculative = seen["baseline"], seen["speculative"]
    if baseline is None or speculative is None:
        return CaseResult(name, CaseStatus.NOT_RUN, MUST[must], "not put to both arms")
    both = {"baseline": baseline, "speculative": speculative}
    crashed: tuple[Subject, ...] = tuple(arm for arm in ARMS if both[arm].died)
    status, said = (
        (CaseStatus.CRASHED, f"{' and '.join(crashed)} died")
        if crashed
        else _compare(baseline, speculative, must, timed)
    )
    shown = status not in (CaseStatus.PASS, CaseStatus.UNSUPPORTED)
    return CaseResult(
        case=name,
        status=status,
        must=MUST[must],
        seen=said,
        crashed=crashed,
        reproduce=reproduction(_telling(both[_teller(crashed)])) if shown else None,
        evidence={arm: _evidence(both[arm]) for arm in ARMS},
    )


def _teller(crashed: Sequence[Subject]) -> Arm:
    """Whose request shows it again: the arm that died, or the one that is under test."""
    return "baseline" if tuple(crashed) == ("baseline",) else "speculative"


def _compare(b: _Seen, s: _Seen, must: str, timed: bool) -> tuple[CaseStatus, str]:
    repeats = list(zip(b.kinds, s.kinds, strict=False))
    if not repeats:
        return CaseStatus.NOT_RUN, "not asked"
    worse = [_worse(mine, its, must) for mine, its in repeats]
    if None not in worse:
        refused = must != "refuse" and all(
            kind <= Kind.REFUSED for _, its in repeats for kind, _ in its
        )
        return CaseStatus.REFUSED if refused else CaseStatus.FAIL, str(worse[0])
    if (slow := _slower(b, s)) is not None and timed:
        return CaseStatus.FAIL, slow
    if (left := _more_left(b, s)) is not None:
        return CaseStatus.FAIL, left
    mine, its = repeats[-1]
    unsound = {
        arm: [said if kind else "answered" for kind, said in kinds if not _sound(kind, must)]
        for arm, kinds in (("baseline", mine), ("speculative", its))
    }
    if len(its) < CROWD and unsound["baseline"]:
        if not unsound["speculative"]:
            return CaseStatus.PASS, f"better than the baseline, which: {unsound['baseline'][0]}"
        if all(kind is Kind.REFUSED for kind, _ in (*mine, *its)):
            return CaseStatus.UNSUPPORTED, unsound["speculative"][0]
        return CaseStatus.BOTH_FAIL, f"both: {unsound['speculative'][0]}"
    if len(its) < CROWD and all(_texts_differ(mine, its) for mine, its in repeats):
        told = next(
            f"{one[1]} where the baseline says {other[1]}"
            for other, one in zip(mine, its, strict=False)
            if _parted(other, one)
        )
        return CaseStatus.DIFFERS, told
    return CaseStatus.PASS, _summary(its)


def _worse(
    baseline: Sequence[tuple[Kind, str]], speculative: Sequence[tuple[Kind, str]], must: str
) -> str | None:
    """In what the speculative arm is worse in one repeat; None when it is not."""
    if min(len(baseline), len(speculative)) >= CROWD:
        bad = [
            [said for kind, said in kinds if kind > Kind.REFUSED]
            for kinds in (baseline, speculative)
        ]
        p = fisher(len(bad[1]), len(speculative), len(bad[0]), len(baseline), "greater")
        if p >= CROWD_LEVEL:
            return None
        return (
            f"{len(bad[1])} of {len(speculative)} requests failed, "
            f"{len(bad[0])} of {len(baseline)} in the baseline: {bad[1][0]}"
        )
    for (mine, _), (its, said) in zip(baseline, speculative, strict=False):
        if _badness(its, must) > _badness(mine, must):
            return f"{said}; the baseline: {mine.name.lower()}"
    return None


def _badness(kind: Kind, must: str) -> int:
    if must == "refuse" and kind <= Kind.REFUSED:
        return 1 - kind
    return int(kind)


def _sound(kind: Kind, must: str) -> bool:
    if must == "either":
        return kind <= Kind.REFUSED
    return kind is (Kind.ANSWERED if must == "answer" else Kind.REFUSED)


def _texts_differ(
    baseline: Sequence[tuple[Kind, str]], speculative: Sequence[tuple[Kind, str]]
) -> bool:
    return any(_parted(one, other) for one, other in zip(baseline, speculative, strict=False))


def _parted(one: tuple[Kind, str], other: tuple[Kind, str]) -> bool:
    """Other statuses or other reasons, where both say one. A client that leaves after a time says
    none: the faster arm may have answered it before."""
    if LEFT in (one[1], other[1]) and one[0] is other[0]:
        return False
    return one != other


def _slower(b: _Seen, s: _Seen) -> str | None:
    mine = [sum(asked.answer.seconds for asked in repeat) for repeat in b.repeats]
    its = [sum(asked.answer.seconds for asked in repeat) for repeat in s.repeats]
    if not mine or not its or min(its) <= SLOWER_RATIO * max(mine) + SLOWER_S:
        return None
    return f"{min(its):.2f} s at best, the baseline {max(mine):.2f} s at worst"


def _more_left(b: _Seen, s: _Seen) -> str | None:
    """KV cache or memory that did not come back, beyond what the baseline keeps too."""
    if s.kv_left is not None and s.kv_left - max(0.0, b.kv_left or 0.0) > KV_FRACTION:
        return f"{s.kv_left:.2%} of the KV cache did not come back"
    if s.grown_bytes is not None and b.grown_bytes is not None:
        more = s.grown_bytes - max(0.0, b.grown_bytes)
        if more > MEMORY_BYTES:
            return (
                f"memory grew by {s.grown_bytes / 2**20:.0f} MiB, "
                f"{more / 2**20:.0f} MiB more than the baseline's"
            )
    return None


def _by_case(record: SuiteRecord, arm: Arm) -> dict[str, _Seen]:
    asked: dict[str, dict[int, list[Asked]]] = defaultdict(lambda: defaultdict(list))
    for one in record.asked:
        if one.subject == arm and one.part != CANARY_PART:
            asked[one.case][one.repeat].append(one)
    looks: dict[str, list[Health]] = defaultdict(list)
    kv: dict[str, float] = defaultdict(float)
    grown: dict[str, float] = defaultdict(float)
    last: Health | None = None
    for look in (look for look in record.health if look.subject == arm):
        looks[look.case].append(look)
        if last is not None and last.healthy and look.healthy:
            if look.kv_cache_usage is not None and last.kv_cache_usage is not None:
                kv[look.case] += look.kv_cache_usage - last.kv_cache_usage
            if look.rss_bytes is not None and last.rss_bytes is not None:
                grown[look.case] += look.rss_bytes - last.rss_bytes
        last = look
    return {
        case: _Seen(
            repeats=tuple(tuple(repeats[number]) for number in sorted(repeats)),
            kinds=tuple(
                tuple(kind_of(one.ask, one.answer) for one in repeats[number])
                for number in sorted(repeats)
            ),
            health=tuple(looks[case]),
            kv_left=kv.get(case),
            grown_bytes=grown.get(case),
        )
        for case, repeats in asked.items()
    }


def _telling(seen: _Seen) -> Asked:
    """The request to show again: the one that went worst."""
    first = seen.repeats[0]
    worst = max(range(len(first)), key=lambda i: seen.kinds[0][i][0])
    return first[worst]


def _evidence(seen: _Seen) -> dict[str, Any]:
    return {
        "outcomes": [_summary(kinds) for kinds in seen.kinds],
        "seconds": [
            round(sum(asked.answer.seconds for asked in repeat), 4) for repeat in seen.repeats
        ],
        "kv_left": seen.kv_left,
        "grown_bytes": seen.grown_bytes,
        "alive_afterwards": not seen.died,
    }


def _summary(kinds: Sequence[tuple[Kind, str]]) -> str:
    """`6 answered, 2 refused (400: …)`."""
    if len(kinds) == 1:
        return kinds[0][0].name.lower() + (f" ({kinds[0][1]})" if kinds[0][0] else "")
    parts = []
    for kind in Kind:
        said = [text for one, text in kinds if one is kind]
        if said:
            name = kind.name.lower().replace("_", " ")
            parts.append(f"{len(said)} {name}" + (f" ({said[0]})" if kind else ""))
    return ", ".join(parts)


def _crashes(results: Sequence[CaseResult], arm: Arm) -> float:
    return float(sum(arm in result.crashed for result in results))


def _label(speculative: Mapping[str, Any]) -> str:
    return deployment_from(speculative).label()
