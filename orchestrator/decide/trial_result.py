"""What one trial amounts to: its pairs in numbers, and a decision for every speedup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.analyse.break_even import NOT_TIMED, BreakEvenStep, break_even_step
from orchestrator.analyse.pairs import SPEEDUPS, Pair, pair_of
from orchestrator.analyse.rung import Rung
from orchestrator.analyse.rung_figures import rung_of
from orchestrator.analyse.saturation import saturation_open
from orchestrator.decide.objective import as_metrics, scores
from orchestrator.decide.verdict import Decision, decide_pairs, should_stop
from orchestrator.measure.category import CategoryFigures, categories_of
from orchestrator.measure.distribution import Distribution, distributions_of
from orchestrator.measure.slo import SloBounds
from orchestrator.plan.identity import content_hash
from orchestrator.plan.trial import Trial
from orchestrator.records import ARMS, Arm, BlockRecord, EngineFacts, Outcome
from orchestrator.run.trial import Judgement
from orchestrator.store import TrialFolder

SUMMED = ("drafts", "draft_tokens", "accepted_tokens", "input_tokens", "output_tokens")
"""Counts add up over pairs; everything else is averaged."""


@dataclass(frozen=True)
class TrialResult:
    """A trial with everything derived from its records. `outcome` is None while it runs."""

    trial: Trial
    outcome: Outcome | None
    pairs: tuple[Pair, ...]
    decisions: Mapping[str, Decision]
    """By speedup name; every metric has one, the headline ends the trial."""
    rung: Rung
    """The same as a rung of its ladder of loads."""
    engines: Mapping[str, EngineFacts]
    started_unix_s: float | None
    ended_unix_s: float | None
    step: BreakEvenStep = NOT_TIMED
    """Where the engines' steps spend their time, and the acceptance length that would be enough."""
    pair_prompts: tuple[str, ...] = ()
    """For every pair a hash of what it asked, in the order of `pairs`."""
    distributions: Mapping[Arm, Mapping[str, Distribution]] = field(default_factory=dict)
    """Per arm and latency, over the valid pairs."""
    categories: Mapping[Arm, Mapping[str, CategoryFigures]] = field(default_factory=dict)
    """Per arm and category of prompts, over the valid pairs."""

    @property
    def headline(self) -> Decision:
        return self.decisions[self.trial.protocol.metric]

    @property
    def failed(self) -> bool:
        return self.outcome is not None and self.outcome.status == "failed"

    @property
    def simulated(self) -> bool:
        return any(pair.baseline.simulated or pair.speculative.simulated for pair in self.pairs)

    @property
    def valid_pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.valid)

    @cached_property
    def figures(self) -> Mapping[Arm, Mapping[str, float]]:
        """Per arm the block figures over valid pairs: counts summed, the rest averaged."""
        return {arm: _combined([_of(pair, arm) for pair in self.valid_pairs]) for arm in ARMS}

    @property
    def acceptance_rate(self) -> float | None:
        """Formula: sum of accepted_tokens / sum of draft_tokens. Undefined: nothing drafted."""
        return _acceptance_rate(self.figures["speculative"])

    @property
    def acceptance_length(self) -> float | None:
        """Formula: 1 + sum of accepted_tokens / sum of drafts. Undefined: no drafts."""
        return _acceptance_length(self.figures["speculative"])


def _acceptance_rate(speculative: Mapping[str, float]) -> float | None:
    return _over(speculative, "accepted_tokens", "draft_tokens")


def _acceptance_length(speculative: Mapping[str, float]) -> float | None:
    accepted = _over(speculative, "accepted_tokens", "drafts")
    return None if accepted is None else 1 + accepted


def read_trial(trial: Trial, folder: TrialFolder, slo: SloBounds | None = None) -> TrialResult:
    """Everything about `trial`, from its folder alone. Raises: StoreError for damaged records."""
    blocks = folder.pairs()
    pairs = tuple(_pair(trial, pair, slo) for pair in blocks)
    times = [block for pair in blocks for block in pair]
    valid = [pair for pair, found in zip(blocks, pairs, strict=True) if found.valid]
    by_arm = {arm: [pair[which] for pair in valid] for which, arm in enumerate(ARMS)}
    outcome = folder.outcome()
    stopped = outcome is not None and outcome.status == "stopped"
    return TrialResult(
        trial=trial,
        outcome=outcome,
        pairs=pairs,
        decisions={name: decide_pairs(pairs, trial.protocol, name) for name in SPEEDUPS},
        rung=rung_of(
            trial,
            list(zip(pairs, blocks, strict=True)),
            engine_cap=trial.pair.baseline.engine.get("max_num_seqs"),
            skipped=(outcome.cause or "stopped") if stopped and outcome is not None else None,
        ),
        step=_step(trial, pairs, blocks),
        engines=folder.engines(),
        started_unix_s=min((block.started_unix_s for block in times), default=None),
        ended_unix_s=max(
            (block.started_unix_s + block.duration_s for block in times), default=None
        ),
        pair_prompts=tuple(asked_in(trial, baseline) for baseline, _ in blocks),
        distributions={arm: distributions_of(own) for arm, own in by_arm.items()},
        categories={arm: categories_of(own) for arm, own in by_arm.items()},
    )


def _step(
    trial: Trial, pairs: Sequence[Pair], blocks: Sequence[tuple[BlockRecord, BlockRecord]]
) -> BreakEvenStep:
    valid = [both for pair, both in zip(pairs, blocks, strict=True) if pair.valid]
    return break_even_step(
        [baseline for baseline, _ in valid],
        [speculative for _, speculative in valid],
        speculates=trial.pair.speculative.speculation is not None,
    )


def asked_in(trial: Trial, block: BlockRecord) -> str:
    """Names what a block asked: the prompt set, and which of its prompts."""
    asked = sorted(f"{r.prompt_id}/{r.turn}" for r in block.requests)
    return content_hash([trial.cell.workload.prompts_hash, asked])


class PairJudge:
    """run.trial.Judge: the headline's decision after every pair, and what a search looks for.

    Picklable.
    """

    def __init__(self, slo: SloBounds | None = None, objectives: Sequence[str] = ()) -> None:
        self._slo, self._objectives = slo, tuple(objectives)
        self._trial = ""
        self._seen: dict[int, Pair] = {}
        """Of that trial: pairs that were looked at before, by index."""

    def __call__(
        self, trial: Trial, blocks: Sequence[tuple[BlockRecord, BlockRecord]]
    ) -> Judgement:
        if trial.id != self._trial:
            self._trial, self._seen = trial.id, {}
        pairs = []
        for baseline, speculative in blocks:
            index = baseline.pair_index
            if index not in self._seen:
                self._seen[index] = _pair(trial, (baseline, speculative), self._slo)
            pairs.append(self._seen[index])
        decision = decide_pairs(pairs, trial.protocol)
        invalid = [pair.why_invalid() for pair in pairs if not pair.valid]
        metrics = {"valid_pairs": float(sum(pair.valid for pair in pairs))}
        stop = bool(pairs) and (
            should_stop(decision, trial.protocol, pairs_measured=len(pairs))
            or _both_saturated(trial, blocks)
        )
        shown: list[tuple[str, float | None]] = [(decision.metric, decision.speedup)]
        if stop or trial.protocol.looks == "every":  # the interval of a single look: at that look
            shown.append((f"{decision.metric}_low", decision.low))
            shown.append((f"{decision.metric}_high", decision.high))
        figures = _combined([_of(pair, "speculative") for pair in pairs if pair.valid])
        shown.append(("acceptance_rate", _acceptance_rate(figures)))
        shown.append(("acceptance_length", _acceptance_length(figures)))
        metrics.update({name: value for name, value in shown if value is not None})
        metrics.update(as_metrics(scores(pairs, trial.protocol, self._objectives, {})))
        return Judgement(
            metrics=metrics,
            valid_pairs=decision.pairs,
            stop=stop,
            why_invalid="; ".join(invalid[-1]) if invalid else None,
        )


def _both_saturated(trial: Trial, blocks: Sequence[tuple[BlockRecord, BlockRecord]]) -> bool:
    """Queues that grow without bound in both arms: more pairs would only show longer queues."""
    if trial.cell.load.mode != "open" or trial.kind == "aa_control":
        return False  # a control is there to be finished
    return all(
        any(pair[which].ended_early for pair in blocks)
        or saturation_open([pair[which].requests for pair in blocks]).saturated
        for which in (0, 1)
    )


def slo_bounds(slo: Mapping[str, float]) -> SloBounds:
    """Per-request bounds of an `slo:` section.

    A request meets `ttft_p99_s: 0.5` when its own ttft_s is at most 0.5; the statistic says what
    share of requests has to. Of several bounds on one metric the strictest holds.
    """
    strictest: dict[str, float] = {}
    for name, bound in slo.items():
        metric = name.split("_")[0]
        strictest[metric] = min(bound, strictest.get(metric, bound))
    return SloBounds(
        ttft_s=strictest.get("ttft"), tpot_s=strictest.get("tpot"), e2e_s=strictest.get("e2e")
    )


def _pair(trial: Trial, blocks: tuple[BlockRecord, BlockRecord], slo: SloBounds | None) -> Pair:
    return pair_of(*blocks, slo=slo, fixed_length=trial.cell.workload.fixed_length)


def _of(pair: Pair, arm: Arm) -> dict[str, float]:
    return (pair.baseline if arm == "baseline" else pair.speculative).as_metrics()


def _combined(blocks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """A figure counts where every block defines it; a maximum stays one."""
    if not blocks:
        return {}
    names = [name for name in blocks[0] if all(name in block for block in blocks)]
    combined = {}
    for name in names:
        values = [block[name] for block in blocks]
        if name in SUMMED or name.startswith("requests_"):
            combined[name] = sum(values)
        elif "_max" in name:
            combined[name] = max(values)
        else:
            combined[name] = sum(values) / len(values)
    return combined


def _over(figures: Mapping[str, float], above: str, below: str) -> float | None:
    if above not in figures or not figures.get(below):
        return None
    return figures[above] / figures[below]
