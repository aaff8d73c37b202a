"""How many tokens to draft at which batch size, as measured: vLLM's dynamic schedule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.decide.choice import leader
from orchestrator.decide.standing import CellAt, cell_at
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.decide.verdict import Verdict
from orchestrator.plan.deployment import SCHEDULE_OPTION, DeploymentPair
from orchestrator.plan.trial import LoadPoint, Trial

Ranges = tuple[tuple[int, int, int], ...]
"""(first batch size, last batch size, tokens to draft), both ends included, from 1 on."""


@dataclass(frozen=True)
class Schedule:
    """What the measured cells ask for, and the cells it comes from."""

    ranges: Ranges
    by_level: Mapping[int, int]
    """Requests in flight that were measured -> tokens to draft; 0 where nothing was faster."""
    based_on: TrialResult
    """The sweep's best cell."""

    @property
    def longest(self) -> int:
        return max(self.by_level.values())

    def as_option(self) -> list[list[int]]:
        return [list(entry) for entry in self.ranges]

    def deployment_pair(self) -> DeploymentPair:
        """The best cell's arms, the speculative one with this schedule."""
        pair = self.based_on.trial.pair
        speculation = pair.speculative.speculation
        assert speculation is not None
        scheduled = replace(
            speculation,
            speculation_length=self.longest,
            options={**speculation.options, SCHEDULE_OPTION: self.as_option()},
        )
        return replace(pair, speculative=replace(pair.speculative, speculation=scheduled))

    def trials(self) -> tuple[Trial, ...]:
        """What verifies it: the schedule itself as a candidate, at the lowest load at which it
        drafts and at the highest that was measured."""
        drafting = [level for level, length in self.by_level.items() if length]
        levels = dict.fromkeys((min(drafting), max(self.by_level)))
        return tuple(self._trial(level) for level in levels)

    def _trial(self, level: int) -> Trial:
        trial = self.based_on.trial
        cell = replace(
            trial.cell,
            speculation_length=self.longest,
            batch_size=level,
            load=LoadPoint("closed", concurrency=level),
        )
        return replace(trial, kind="confirmation", pair=self.deployment_pair(), cell=cell)


def schedule_of(result: SweepResult) -> Schedule | None:
    """The schedule of the best cell's method, draft, workload and sampling.

    At every measured number in flight the leading K among those called faster, else 0. Between two
    measured loads the smaller of their lengths; beyond the highest one 0: nothing is drafted where
    nothing was measured.
    Undefined: None when no cell is faster, fewer than two loads were measured in a closed loop
        whose number in flight is the batch size, or the same length leads everywhere (none needed).
    """
    best = result.best
    if best is None:
        return None
    by_level: dict[int, list[CellAt]] = defaultdict(list)
    for trial in result.trials:
        level = trial.trial.cell.load.concurrency
        if level is not None and level == trial.trial.cell.batch_size and _family(trial, best):
            by_level[level].append(cell_at(result, trial))
    lengths = {level: _length(leader(cells)) for level, cells in sorted(by_level.items())}
    if len(lengths) < 2 or len(set(lengths.values())) < 2:
        return None
    cap = best.trial.pair.baseline.engine.get("max_num_seqs")
    ranges = ranges_of(lengths, None if cap is None else int(cap))
    return Schedule(ranges, lengths, best)


def ranges_of(lengths: Mapping[int, int], cap: int | None) -> Ranges:
    """Ranges from lengths at measured batch sizes (ascending).

    >>> ranges_of({1: 4, 4: 2, 8: 0}, cap=16)
    ((1, 1, 4), (2, 4, 2), (5, 16, 0))
    """
    levels = list(lengths)
    at = [0] * (levels[-1] + 1)
    for below, above in zip([0, *levels], levels, strict=False):
        smaller = min(lengths.get(below, 0), lengths[above])
        for size in range(below + 1, above):
            at[size] = smaller
        at[above] = lengths[above]
    # The engine carries the last length on to any larger batch: so the last one is told to be 0.
    last = max(levels[-1] + 1, cap or 0)
    at += [0] * (last - levels[-1])
    ranges: list[tuple[int, int, int]] = []
    for size in range(1, last + 1):
        if ranges and ranges[-1][2] == at[size]:
            ranges[-1] = (ranges[-1][0], size, at[size])
        else:
            ranges.append((size, size, at[size]))
    if cap is not None and cap == levels[-1]:
        ranges = [(low, min(high, cap), k) for low, high, k in ranges if low <= cap]
    return tuple(ranges)


def schedule_trials(result: SweepResult, schedule: Schedule) -> tuple[TrialResult, ...]:
    """Confirmations that ran this very schedule."""
    key = schedule.deployment_pair().key
    return tuple(trial for trial in result.confirmations if trial.trial.pair.key == key)


def verified(result: SweepResult, schedule: Schedule) -> bool | None:
    """Whether the schedule did what it promises when it ran itself.

    True: faster where it drafts, and not worse than the margin where it does not. False: slower
    anywhere, or told not to be faster where it drafts. None: not run at both ends, or not told.
    """
    found = schedule_trials(result, schedule)
    wanted = {trial.cell.load.concurrency for trial in schedule.trials()}
    answers = [_kept(schedule, trial) for trial in found]
    if any(answer is False for answer in answers):
        return False
    ran = {trial.trial.cell.load.concurrency for trial in found}
    return True if ran >= wanted and all(answers) else None


def _kept(schedule: Schedule, trial: TrialResult) -> bool | None:
    decision, interval = trial.headline, trial.headline.interval
    if interval is None:
        return None
    if decision.verdict is Verdict.SLOWER:
        return False
    if schedule.by_level.get(trial.trial.cell.load.concurrency or 0):
        if decision.verdict is Verdict.CANNOT_TELL:
            return None
        return decision.verdict is Verdict.FASTER
    return True if interval.log_low >= -decision.log_margin else None


def _family(trial: TrialResult, best: TrialResult) -> bool:
    one, other = trial.trial, best.trial
    a, b = one.pair.speculative.speculation, other.pair.speculative.speculation
    return (
        a is not None
        and b is not None
        and (a.method, a.draft, dict(a.options)) == (b.method, b.draft, dict(b.options))
        and one.pair.baseline == other.pair.baseline
        and one.cell.workload == other.cell.workload
        and one.cell.sampling == other.cell.sampling
    )


def _length(cell: CellAt | None) -> int:
    return 0 if cell is None else cell.result.trial.cell.speculation_length
