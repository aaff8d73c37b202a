"""A broken limit in one sentence."""

from __future__ import annotations

from statistics import fmean

from orchestrator.switch.guard.check import Check
from orchestrator.switch.guard.watch import DROP, FLOOR, SLOWER, Watch
from orchestrator.switch.guarding import Breach

SLOWER_NAMES = {"slower_ttft": "TTFT", "slower_tpot": "TPOT", "slower_e2e": "E2E latency"}


def breach_of(check: Check, watch: Watch, at_s: float, *, margin: float | None) -> Breach:
    """What `check` found, with its evidence. `margin`: of the comparison with the baseline."""
    seen = check.seen
    assert seen is not None, "a check without observations has no evidence"
    rates = _rates(watch, check.category)
    acceptance = fmean(rates) if rates else None
    return Breach(
        at_s=at_s,
        rule=check.rule,
        text=_text(check, acceptance, margin),
        category=check.category,
        evidence={
            "share": round(seen.share, 6),
            "allowed": round(seen.allowed, 6),
            "samples": seen.count,
            "acceptance_rate": None if acceptance is None else round(acceptance, 6),
            "log_evidence": round(check.log_evidence, 3),
            "began_s": check.began_s,
        },
    )


def _rates(watch: Watch, category: str | None) -> list[float]:
    if category is not None:
        return list(watch.recent_rates.get(category, ()))
    return [rate for rates in watch.recent_rates.values() for rate in rates]


def _text(check: Check, acceptance: float | None, margin: float | None) -> str:
    seen = check.seen
    assert seen is not None
    where = f" of category {check.category}" if check.category else ""
    share, allowed, count = f"{seen.share:.1%}", f"{seen.allowed:.1%}", f"{seen.count} requests"
    now = "" if acceptance is None else f" (now {acceptance:.2f})"
    if check.rule == FLOOR:
        return f"acceptance{where} is below its floor of {1 - seen.allowed:.2f}{now}"
    if check.rule == DROP:
        return (
            f"acceptance{where} fell{now}: {share} of {count} lie where at most {allowed} would "
            "after the fall that is borne"
        )
    if check.rule in SLOWER.values():
        return (
            f"{SLOWER_NAMES[check.rule]}: the speculative request of a pair took more than "
            f"{margin:g} times the baseline's in {share} of {count}; at most {allowed} are borne"
        )
    broke = {
        "errors": "failed",
        "mismatch": "differed from the baseline's greedy answer",
        "repetition": "were repetitive",
    }.get(check.rule, f"broke {check.rule}")
    return f"{share} of {count} {broke}; at most {allowed} are borne"
