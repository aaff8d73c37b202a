"""What the suites of a plan will take, roughly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from orchestrator.plan.plan import Plan
from orchestrator.report.plan_text import duration
from orchestrator.run.suites.catalogue import SUITES
from orchestrator.run.suites.job import SuiteJob


def suite_seconds(job: SuiteJob, plan: Plan) -> float:
    """Formula: subjects x requests x output tokens x seconds a token, one stream; at most the
    suite's own limit. A soak takes what its section says. Engines start besides."""
    entry = SUITES[job.suite]
    if entry.seconds is not None:
        return entry.seconds(job.settings)
    tokens = entry.subjects * entry.requests * entry.output_tokens
    return min(entry.limit_s, tokens * plan.estimate.token_s)


def suites_text(plan: Plan, jobs: Sequence[SuiteJob]) -> str:
    """A line a suite: on how many pairs, how long about. Empty where there is none."""
    if not jobs:
        return ""
    lines = ["", "Suites, after the trials, on every pair that is compared"]
    total = 0.0
    first = {job.suite: job for job in reversed(jobs)}
    for name, pairs in Counter(job.suite for job in jobs).items():
        entry, each_s = SUITES[name], suite_seconds(first[name], plan)
        total += pairs * each_s
        if entry.seconds is not None:
            lines.append(f"  {name}: {pairs} x {duration(each_s)} of load on both engines")
            continue
        again = ", with the baseline relaunched" if entry.subjects > 2 else ""
        lines.append(
            f"  {name}: {pairs} x about {duration(each_s)} ({entry.requests} requests to each "
            f"of {entry.subjects} engines{again})"
        )
    lines.append(f"  about {duration(total)} in all, besides engine starts")
    return "\n".join(lines) + "\n"


def suites_as_json(plan: Plan, jobs: Sequence[SuiteJob]) -> list[dict[str, Any]]:
    return [
        {
            "id": job.id,
            "suite": job.suite,
            "label": job.label(),
            "baseline": job.pair.baseline.key,
            "speculative": job.pair.speculative.key,
            "about_s": suite_seconds(job, plan),
        }
        for job in jobs
    ]
