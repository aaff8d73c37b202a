"""What every load generator is asked to do, and what it then says it saw."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from orchestrator.adapters.http.health import upper_quantile
from orchestrator.adapters.simulated.null_schedule import NullSchedule
from orchestrator.adapters.simulated.null_server import read_truth


@dataclass(frozen=True)
class Scenario:
    """`streams` at once: kept so (closed), or on average by starting them evenly (open)."""

    name: str
    mode: str
    streams: int
    requests: int
    tokens: int
    schedule: NullSchedule

    @property
    def rate_rps(self) -> float:
        """Starts a second that give `streams` at once: streams / life of a stream."""
        return self.streams / self.schedule.due_s(self.tokens - 1)


FULL_LOAD = Scenario("full load", "closed", 256, 1024, 256, NullSchedule(0.0, 0.001))
ACCURACY = Scenario("64 streams", "open", 64, 500, 64, NullSchedule(0.05, 0.02))


@dataclass(frozen=True)
class Claim:
    """One request, as the tool reports it; `text` holds the server's own times."""

    ttft_s: float
    tpot_s: float
    tokens: int
    text: str


@dataclass(frozen=True)
class Outcome:
    """One run of one tool. `error` says why there is no result."""

    tool: str
    scenario: str
    tok_per_s: float | None = None
    ttft_error_p99_s: float | None = None
    tpot_error_p99_s: float | None = None
    completed: int = 0
    other_cores: float | None = None
    """Processor time of everything else on the machine during the run, in cores."""
    note: str = ""
    error: str | None = None


def write_prompts(path: Path, field: str, count: int) -> None:
    """The request set: the same prompts for every tool, under the name the tool wants."""
    lines = (
        json.dumps({field: f"Request {i}. " + "A server that computes nothing. " * 12})
        for i in range(count)
    )
    path.write_text("\n".join(lines) + "\n")


def judge(tool: str, scenario: Scenario, claims: list[Claim], duration_s: float) -> Outcome:
    """Tokens a second as claimed, and the 99th percentile of the claims' errors.

    Formula: TTFT: claim − (first stamp − received stamp); TPOT: claim − (last stamp − first) /
    (tokens − 1); by size, whatever the sign.
    """
    ttft, tpot = [], []
    for claim in claims:
        truth = read_truth(claim.text)
        ttft.append(abs(claim.ttft_s - (truth.sent_s[0] - truth.received_s)))
        true_tpot_s = (truth.sent_s[-1] - truth.sent_s[0]) / (claim.tokens - 1)
        tpot.append(abs(claim.tpot_s - true_tpot_s))
    return Outcome(
        tool=tool,
        scenario=scenario.name,
        tok_per_s=sum(claim.tokens for claim in claims) / duration_s,
        ttft_error_p99_s=upper_quantile(ttft, 0.99),
        tpot_error_p99_s=upper_quantile(tpot, 0.99),
        completed=len(claims),
    )


def middle(outcomes: list[Outcome]) -> Outcome:
    """Of several runs of one tool the medians, each figure by itself; an error if all failed."""
    good = [outcome for outcome in outcomes if outcome.error is None]
    if not good:
        return outcomes[0]
    figures = ("tok_per_s", "ttft_error_p99_s", "tpot_error_p99_s", "other_cores")
    medians = {
        name: median(values)
        for name in figures
        if (values := [getattr(o, name) for o in good if getattr(o, name) is not None])
    }
    first = good[0]
    return Outcome(
        first.tool, first.scenario, completed=first.completed, note=first.note, **medians
    )
