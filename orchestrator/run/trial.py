"""One trial: warm up both arms, then pairs of blocks A B, B A, … until the verdict is clear."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.errors import DeploymentError, DevicesLost, OrchestratorError
from orchestrator.plan.block import BlockPlan
from orchestrator.plan.deployment import WHAT_IF
from orchestrator.plan.trial import Trial
from orchestrator.ports import (
    Blocks,
    Endpoint,
    Lease,
    LoadClient,
    PairProvider,
    PairReport,
    ReportPair,
    ServerProbe,
    Telemetry,
)
from orchestrator.records import ARMS, Arm, BlockRecord, FailureClass, Outcome
from orchestrator.run.ladder_gate import skipped
from orchestrator.run.rehearsal import Recorded, Rehearsal
from orchestrator.run.trial_seconds import Pair, TrialSeconds
from orchestrator.store import TrialFolder


@dataclass(frozen=True)
class Judgement:
    """What the pairs so far amount to."""

    metrics: Mapping[str, float]
    valid_pairs: int
    stop: bool
    why_invalid: str | None = None
    """The reason of the latest invalid block, for the message when no pair was valid."""


_MOVES = 3
"""How often a trial may go on elsewhere after its devices were lost."""

Judge = Callable[[Trial, Sequence[Pair]], Judgement]


Gate = Callable[[Trial], str | None]


def arm_order(pair_index: int) -> tuple[Arm, Arm]:
    """A B, B A, A B, …: a drift that is linear in time cancels over two pairs."""
    return ("baseline", "speculative") if pair_index % 2 == 0 else ("speculative", "baseline")


class _Ended(Exception):
    def __init__(
        self,
        failure: FailureClass,
        cause: str,
        log_tail: str | None = None,
        broken: tuple[Arm, ...] = (),
    ) -> None:
        self.failure, self.cause, self.log_tail = failure, cause, log_tail
        self.broken = broken
        """Arms whose engine must not be used again."""


class _Stopped(Exception):
    def __init__(self, reason: str, valid_pairs: int) -> None:
        self.reason, self.valid_pairs = reason, valid_pairs


@contextlib.contextmanager
def _client_failures() -> Iterator[None]:
    """What goes wrong on our side of the wire ends the trial, and blames no engine."""
    try:
        yield
    except DevicesLost:
        raise
    except OrchestratorError as error:
        raise _Ended(FailureClass.CLIENT_FAILED, str(error)) from error


@dataclass
class TrialRunner:
    """Everything a trial needs of the outside world."""

    pool: PairProvider
    client: LoadClient
    probe: ServerProbe
    telemetry: Telemetry
    judge: Judge
    gate: Gate = lambda trial: None
    """Why a trial need not be run (its load is known to be too much), or None."""
    rehearsal: Rehearsal | None = None
    """For what-ifs: tells the proposer what the target will say. None where engines are simulated,
    and draw what is accepted themselves."""
    monotonic: Callable[[], float] = time.monotonic

    def run(self, trial: Trial, blocks: Blocks, folder: TrialFolder, report: ReportPair) -> Outcome:
        """Run `trial` to its end and return its outcome; records are in `folder`, outcome last.

        Pairs that an earlier, interrupted run completed are kept and not measured again.
        Raises: StoreError when records cannot be written (nothing else is lost).
        """
        seconds = TrialSeconds(self.monotonic)
        folder.begin(trial)
        reason = self.gate(trial)
        if reason is not None:
            outcome = skipped(trial, reason)
            folder.save_outcome(outcome)
            return outcome
        folder.discard_unpaired()
        pairs = list(folder.pairs())
        try:
            judgement = self._measure(trial, blocks, folder, report, pairs, seconds)
        except _Stopped as stop:
            outcome = seconds.outcome(trial, "stopped", pairs, stop.valid_pairs, cause=stop.reason)
        except _Ended as end:
            outcome = seconds.outcome(
                trial, "failed", pairs, 0, failure=end.failure, cause=end.cause, log=end.log_tail
            )
        else:
            if judgement.valid_pairs == 0:
                cause = f"none of {len(pairs)} pairs was valid: {judgement.why_invalid}"
                outcome = seconds.outcome(
                    trial, "failed", pairs, 0, failure=FailureClass.NO_VALID_PAIRS, cause=cause
                )
            else:
                outcome = seconds.outcome(trial, "finished", pairs, judgement.valid_pairs)
        folder.save_outcome(outcome)
        return outcome

    def _measure(
        self,
        trial: Trial,
        blocks: Blocks,
        folder: TrialFolder,
        report: ReportPair,
        pairs: list[Pair],
        seconds: TrialSeconds,
    ) -> Judgement:
        judgement = self.judge(trial, pairs)
        for moves in itertools.count():
            if judgement.stop or not _goes_on(trial, pairs):
                return judgement
            try:
                return self._on_devices(trial, blocks, folder, report, pairs, seconds, judgement)
            except DevicesLost as error:
                # The pairs that are whole stay; the one in flight is measured anew elsewhere.
                if moves == _MOVES:
                    raise _Ended(FailureClass.DEVICES_LOST, error.cause, error.log_tail) from error
                folder.discard_unpaired()
                judgement = self.judge(trial, pairs)
            except DeploymentError as error:
                raise _Ended(FailureClass(error.failure), error.cause, error.log_tail) from error
        raise AssertionError("not reached: the loop returns or raises")

    def _on_devices(
        self,
        trial: Trial,
        blocks: Blocks,
        folder: TrialFolder,
        report: ReportPair,
        pairs: list[Pair],
        seconds: TrialSeconds,
        judgement: Judgement,
    ) -> Judgement:
        """All pairs that are missing, on one lease. Raises: DevicesLost, DeploymentError, _Ended"""
        seconds.asked()
        lease = self.pool.lease(trial.pair, holder=trial.id)
        seconds.leased(lease.starting_s)
        broken: tuple[Arm, ...] = ()
        try:
            folder.save_engines(
                {"baseline": lease.baseline_facts, "speculative": lease.speculative_facts}
            )
            self._warm_up(trial, blocks, folder, lease)
            seconds.warmed_up()
            while _goes_on(trial, pairs) and not judgement.stop:
                pair = self._run_pair(trial, blocks, lease, len(pairs), folder, seconds)
                pairs.append(pair)
                seconds.measured(pair)
                judgement = self.judge(trial, pairs)
                ends = judgement.stop or not _goes_on(trial, pairs)
                most = trial.protocol.pairs_max
                reason = report(PairReport(trial.id, len(pairs), most, judgement.metrics, ends))
                if reason is not None and not ends:
                    raise _Stopped(reason, judgement.valid_pairs)
        except _Ended as end:
            broken = end.broken
            raise
        except DevicesLost:
            broken = ARMS
            raise
        finally:
            self.pool.release(lease, broken=broken)
        return judgement

    def _warm_up(self, trial: Trial, blocks: Blocks, folder: TrialFolder, lease: Lease) -> None:
        plan = blocks.warmup()
        if not plan.requests:
            return
        recorded = self._rehearse(trial, plan, lease)
        for position, arm in enumerate(arm_order(0)):
            endpoint = self.pool.activate(lease, arm).endpoint
            self._teach(arm, endpoint, recorded)
            self._warm(trial, plan, folder, lease, arm, position, endpoint)

    def _rehearse(self, trial: Trial, plan: BlockPlan, lease: Lease) -> Recorded | None:
        """What the target will say, where a supposed draft has to know it."""
        if self.rehearsal is None or trial.cell.method != WHAT_IF:
            return None
        endpoint = self.pool.activate(lease, "baseline").endpoint
        with _client_failures():
            return self.rehearsal.record(endpoint, plan)

    def _teach(self, arm: Arm, endpoint: Endpoint, recorded: Recorded | None) -> None:
        if self.rehearsal is None or recorded is None or arm != "speculative":
            return
        with _client_failures():
            self.rehearsal.teach(endpoint, recorded)

    def _warm(
        self,
        trial: Trial,
        plan: BlockPlan,
        folder: TrialFolder,
        lease: Lease,
        arm: Arm,
        position: int,
        endpoint: Endpoint,
    ) -> None:
        block = self._run_block(trial, plan, endpoint, arm, 0, position, "warmup")
        self._refuse_dead_engine(block, lease, "in the warm-up")
        folder.save_block(block)

    def _run_pair(
        self,
        trial: Trial,
        blocks: Blocks,
        lease: Lease,
        index: int,
        folder: TrialFolder,
        seconds: TrialSeconds,
    ) -> Pair:
        plan = blocks.pair(index)
        recorded = self._rehearse(trial, plan, lease)
        done: dict[Arm, BlockRecord] = {}
        for position, arm in enumerate(arm_order(index)):
            began = self.monotonic()
            active = self.pool.activate(lease, arm)
            warmup = blocks.warmup() if active.fresh else None
            if warmup is not None and warmup.requests:
                self._warm(trial, warmup, folder, lease, arm, position, active.endpoint)
            if active.fresh:
                seconds.turned(self.monotonic() - began)
            self._teach(arm, active.endpoint, recorded)
            block = self._run_block(trial, plan, active.endpoint, arm, index, position, "measured")
            self._refuse_dead_engine(block, lease, f"in block {2 * index + position + 1}")
            folder.save_block(block)
            done[arm] = block
        return done["baseline"], done["speculative"]

    def _run_block(
        self,
        trial: Trial,
        plan: BlockPlan,
        endpoint: Endpoint,
        arm: Arm,
        index: int,
        position: int,
        kind: Literal["warmup", "measured"],
    ) -> BlockRecord:
        before = self.probe.read(endpoint)
        sampling = self.telemetry.start(endpoint)
        try:
            with _client_failures():
                seen = self.client.run_block(endpoint, plan)
        finally:
            samples = sampling.stop()
        return BlockRecord(
            trial_id=trial.id,
            pair_index=index,
            arm=arm,
            position=position,
            kind=kind,
            started_unix_s=seen.started_unix_s,
            duration_s=seen.duration_s,
            requests=seen.requests,
            client=seen.client,
            counters_before=before,
            counters_after=self.probe.read(endpoint),
            samples=samples,
            simulated=endpoint.simulated,
            ended_early=seen.ended_early,
        )

    def _refuse_dead_engine(self, block: BlockRecord, lease: Lease, where: str) -> None:
        """A failed request is counted; an engine that died, or answers nothing, ends the trial."""
        failed = [request for request in block.requests if not request.completed]
        if not failed:
            return
        first = failed[0]
        what = f"{first.error}: {first.error_text or 'no text'}"
        broken = self.pool.broken_arms(lease)
        if block.arm in broken:
            raise self._dead(block, lease, f"{where} ({what})", broken)
        if len(failed) == len(block.requests):
            raise _Ended(
                FailureClass.ALL_REQUESTS_FAILED,
                f"all {len(failed)} requests to the {block.arm} engine failed {where} ({what})",
                broken=(block.arm,),
            )

    def _dead(
        self, block: BlockRecord, lease: Lease, where: str, broken: tuple[Arm, ...]
    ) -> _Ended:
        found = self.pool.autopsy(lease, block.arm)
        if found is None:
            cause = f"the {block.arm} engine died {where}"
            return _Ended(FailureClass.CRASHED, cause, broken=broken)
        failure = FailureClass(found.failure)
        said = {FailureClass.UNRESPONSIVE: "stopped answering"}.get(failure, "died")
        cause = f"the {block.arm} engine {said} {where}: {found.cause}"
        if failure is FailureClass.OUT_OF_MEMORY:
            cause = f"{cause}; {_memory_in(block)}"
        return _Ended(failure, cause, found.log_tail, broken)


def _memory_in(block: BlockRecord) -> str:
    """The most that was sampled of every figure of memory while the block ran."""
    most: dict[str, float] = {}
    for sample in block.samples:
        for name, value in sample.values.items():
            if name.endswith("_bytes"):
                most[name] = max(value, most.get(name, value))
    said = [f"{name.removesuffix('_bytes')} {most[name] / 2**30:.2f} GiB" for name in sorted(most)]
    return f"at most in that block: {', '.join(said)}" if said else "memory was not sampled"


def _goes_on(trial: Trial, pairs: Sequence[Pair]) -> bool:
    """Whether the protocol allows another pair. Time spent says nothing of who is faster, so to
    stop by it does not bias the verdict."""
    protocol = trial.protocol
    if len(pairs) >= protocol.pairs_max:
        return False
    if protocol.trial_seconds is None or len(pairs) < protocol.pairs_min:
        return True
    return sum(block.duration_s for pair in pairs for block in pair) < protocol.trial_seconds
