"""A B, B A, …; same prompts for both arms; kept pairs are not measured again; ends are classed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import ClientFailed, DeploymentError, DevicesLost
from orchestrator.plan.block import BlockPlan
from orchestrator.plan.deployment import DeploymentPair, Speculation
from orchestrator.ports import BlockObservation, Endpoint, PairReport
from orchestrator.records import FailureClass
from orchestrator.run.pool import Pool
from orchestrator.run.rehearsal import Recorded
from orchestrator.run.trial import Judgement, TrialRunner, arm_order
from orchestrator.store import TrialFolder
from tests.run.fakes import (
    BASELINE,
    FakeBlocks,
    FakeClient,
    FakeClock,
    FakeDeployer,
    FakeProbe,
    FakeTelemetry,
    stop_after,
    trial,
)


def runner(
    client: FakeClient, deployer: FakeDeployer | None = None, *, pairs: int = 3
) -> TrialRunner:
    return TrialRunner(
        pool=Pool(deployer or FakeDeployer()),
        client=client,
        probe=FakeProbe(),
        telemetry=FakeTelemetry(),
        judge=stop_after(pairs),
        monotonic=FakeClock(),
    )


def test_blocks_interleave_and_both_arms_get_the_same_prompts(tmp_path: Path) -> None:
    client = FakeClient()
    reports: list[PairReport] = []
    outcome = runner(client).run(trial(), FakeBlocks(), TrialFolder(tmp_path), reports.append)
    assert client.sent == [
        ("baseline", "warm"),
        ("ngram", "warm"),
        ("baseline", "p0"),
        ("ngram", "p0"),
        ("ngram", "p1"),
        ("baseline", "p1"),
        ("baseline", "p2"),
        ("ngram", "p2"),
    ]
    assert (outcome.status, outcome.pairs_measured) == ("finished", 3)
    assert [report.pairs_done for report in reports] == [1, 2, 3]
    assert TrialFolder(tmp_path).outcome() == outcome


def test_positions_say_who_went_first(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    runner(FakeClient()).run(trial(), FakeBlocks(), folder, lambda _: None)
    assert [pair[0].position for pair in folder.pairs()] == [0, 1, 0]
    assert arm_order(0) == ("baseline", "speculative")
    assert arm_order(1) == ("speculative", "baseline")


def test_at_most_pairs_max_pairs_run(tmp_path: Path) -> None:
    outcome = runner(FakeClient(), pairs=99).run(
        trial(pairs=(2, 4)), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert outcome.pairs_measured == 4


def test_an_interrupted_trial_goes_on_after_its_last_whole_pair(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)

    class Killed(BaseException):
        pass

    def kill_in_third(endpoint: Endpoint, prompt: str) -> bool:
        if prompt == "p2" and endpoint.name.startswith("ngram"):
            raise Killed
        return False

    with pytest.raises(Killed):
        runner(FakeClient(kill_in_third)).run(trial(), FakeBlocks(), folder, lambda _: None)
    assert folder.outcome() is None
    again = FakeClient()
    outcome = runner(again).run(trial(), FakeBlocks(), folder, lambda _: None)
    assert again.sent == [
        ("baseline", "warm"),
        ("ngram", "warm"),
        ("baseline", "p2"),
        ("ngram", "p2"),
    ]
    assert outcome.pairs_measured == 3


def test_a_trial_killed_after_its_last_pair_starts_no_engine(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    runner(FakeClient()).run(trial(), FakeBlocks(), folder, lambda _: None)
    (tmp_path / "outcome.json").unlink()
    deployer = FakeDeployer()
    outcome = runner(FakeClient(), deployer).run(trial(), FakeBlocks(), folder, lambda _: None)
    assert deployer.started == []
    assert (outcome.status, outcome.pairs_measured) == ("finished", 3)


def test_an_engine_that_does_not_start_is_an_outcome_with_its_log(tmp_path: Path) -> None:
    deployer = FakeDeployer(refuse={"ngram K=4"})
    outcome = runner(FakeClient(), deployer).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert outcome.failure is FailureClass.OUT_OF_MEMORY
    assert outcome.cause == "no room for the draft"
    assert outcome.log_tail == "log line"


def test_an_engine_that_dies_names_the_block_and_is_not_used_again(tmp_path: Path) -> None:
    deployer = FakeDeployer()

    def die(endpoint: Endpoint, prompt: str) -> bool:
        if prompt == "p1" and endpoint.name.startswith("ngram"):
            deployer.dead.add(endpoint.name)
            return True
        return False

    outcome = runner(FakeClient(die), deployer).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert outcome.failure is FailureClass.CRASHED
    assert outcome.cause == ("the speculative engine died in block 3 (reset: connection reset)")
    assert [name.split("-")[0] for name in deployer.stopped] == ["ngram"]
    assert outcome.pairs_measured == 1


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (FailureClass.OUT_OF_MEMORY, "engine died in block 1: the reason; memory was not sampled"),
        (FailureClass.UNRESPONSIVE, "engine stopped answering in block 1"),
    ],
)
def test_what_became_of_the_engine_is_the_failure(
    tmp_path: Path, failure: FailureClass, said: str
) -> None:
    found = DeploymentError(failure.value, "the reason", "the end of its log")
    deployer = FakeDeployer(autopsies={"baseline": found})

    def die(endpoint: Endpoint, prompt: str) -> bool:
        if prompt == "p0":
            deployer.dead.add(endpoint.name)
        return prompt == "p0"

    outcome = runner(FakeClient(die), deployer).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert outcome.failure is failure
    assert said.partition(":")[0] in str(outcome.cause)
    assert "the reason" in str(outcome.cause)
    assert outcome.log_tail == "the end of its log"
    assert [name.split("-")[0] for name in deployer.stopped] == ["baseline"]


def test_an_engine_that_lives_but_answers_nothing_ends_the_trial(tmp_path: Path) -> None:
    outcome = runner(FakeClient(lambda endpoint, prompt: prompt == "p0")).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert outcome.failure is FailureClass.ALL_REQUESTS_FAILED


def test_no_valid_pair_is_a_failure_with_the_reason(tmp_path: Path) -> None:
    run = runner(FakeClient())
    run.judge = lambda trial, pairs: Judgement({}, 0, False, "client_late: 40 ms")
    outcome = run.run(trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None)
    assert outcome.failure is FailureClass.NO_VALID_PAIRS
    assert outcome.cause == "none of 4 pairs was valid: client_late: 40 ms"


def test_seconds_are_accounted_for(tmp_path: Path) -> None:
    outcome = runner(FakeClient()).run(trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None)
    assert outcome.measured_s == 6.0  # 3 pairs of two blocks of 1 s
    assert outcome.waiting_s is not None
    assert outcome.warmup_s is not None


def test_a_time_budget_ends_a_trial_after_pairs_min(tmp_path: Path) -> None:
    # Two blocks of 1 s a pair: 3 s are used up within the second pair, and 2 pairs are the least.
    budgeted = trial(pairs=(2, 4))
    budgeted = replace(budgeted, protocol=replace(budgeted.protocol, trial_seconds=3.0))
    outcome = runner(FakeClient(), pairs=99).run(
        budgeted, FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert outcome.pairs_measured == 2


class LosingClient(FakeClient):
    """The node is lost in mid-block, once."""

    def __init__(self, prompt: str, times: int = 1) -> None:
        super().__init__()
        self.prompt, self.times = prompt, times

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        if self.times and block.requests[0].prompt.id == self.prompt:
            self.times -= 1
            raise DevicesLost("devices_lost", "node gone")
        return super().run_block(endpoint, block)


def test_a_trial_whose_node_is_lost_goes_on_elsewhere_after_its_last_whole_pair(
    tmp_path: Path,
) -> None:
    client, deployer = LosingClient("p1"), FakeDeployer()
    outcome = runner(client, deployer).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert (outcome.status, outcome.pairs_measured) == ("finished", 3)
    assert [prompt for _, prompt in client.sent] == ["warm"] * 2 + ["p0"] * 2 + ["warm"] * 2 + [
        "p1", "p1", "p2", "p2",
    ]  # fmt: skip
    assert len(deployer.started) == 4


def test_a_crash_on_a_node_that_turns_out_to_be_lost_is_not_the_engines(tmp_path: Path) -> None:
    """The engine's connection is reset first; that its node is gone is known a moment later."""

    class Lost(FakeDeployer):
        told = False

        def healthy(self, name: str) -> bool:
            if not self.told and client.sent[-1][1] == "p1":
                self.told = True
                raise DevicesLost("devices_lost", "node gone")
            return True

    failing = iter([True])
    client = FakeClient(lambda endpoint, prompt: prompt == "p1" and next(failing, False))
    outcome = runner(client, Lost()).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert (outcome.status, outcome.pairs_measured) == ("finished", 3)


def test_a_trial_that_loses_every_node_fails_as_that(tmp_path: Path) -> None:
    outcome = runner(LosingClient("p1", times=99)).run(
        trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None
    )
    assert (outcome.status, outcome.failure) == ("failed", FailureClass.DEVICES_LOST)
    assert outcome.pairs_measured == 1


def test_an_engine_started_for_its_turn_is_warmed_up_before_it_is_measured(tmp_path: Path) -> None:
    client = FakeClient()
    one = runner(client, pairs=2)
    one.pool = Pool(FakeDeployer(), in_turn=True)
    one.run(trial(), FakeBlocks(), TrialFolder(tmp_path), lambda _: None)
    assert client.sent == [
        ("baseline", "warm"),
        ("ngram", "warm"),
        ("baseline", "warm"),
        ("baseline", "p0"),
        ("ngram", "warm"),
        ("ngram", "p0"),
        ("ngram", "p1"),
        ("baseline", "warm"),
        ("baseline", "p1"),
    ]


def test_a_supposed_draft_is_told_what_the_baseline_says_before_every_block(tmp_path: Path) -> None:
    class Listening:
        """A rehearsal that remembers who was asked what, and who was told."""

        def __init__(self) -> None:
            self.heard: list[tuple[str, str]] = []

        def record(self, endpoint: Endpoint, block: BlockPlan) -> Recorded:
            self.heard.append((f"ask {endpoint.name[:8]}", block.requests[0].prompt.id))
            return [[[1], [2]]]

        def teach(self, endpoint: Endpoint, recorded: Recorded) -> None:
            self.heard.append((f"tell {endpoint.name[:5]}", str(recorded)))

    supposed = Speculation("what_if", 4, "supposed", {"acceptance": 0.5, "draft_cost_s": 0.0})
    planned = trial()
    asked = replace(
        planned,
        kind="what_if",
        pair=DeploymentPair(planned.pair.baseline, replace(BASELINE, speculation=supposed)),
        cell=replace(planned.cell, method="what_if"),
    )
    listening = Listening()
    running = replace(runner(FakeClient(), pairs=2), rehearsal=listening)  # type: ignore[arg-type]
    outcome = running.run(asked, FakeBlocks(), TrialFolder(tmp_path), lambda _: None)
    assert outcome.status == "finished"
    told = ("tell what-", "[[[1], [2]]]")
    assert listening.heard == [
        *(("ask baseline", "warm"), told), *(("ask baseline", "p0"), told),
        *(("ask baseline", "p1"), told),
    ]  # fmt: skip
    listening.heard.clear()
    other = replace(running, pool=Pool(FakeDeployer()))
    other.run(trial(), FakeBlocks(), TrialFolder(tmp_path / "ngram"), lambda _: None)
    assert listening.heard == [], "a real draft is told nothing"


def test_a_supposed_draft_that_cannot_be_told_ends_the_trial(tmp_path: Path) -> None:
    class Deaf:
        def record(self, endpoint: Endpoint, block: BlockPlan) -> Recorded:
            raise ClientFailed("no tokens came")

    planned = trial()
    asked = replace(planned, cell=replace(planned.cell, method="what_if"))
    running = replace(runner(FakeClient()), rehearsal=Deaf())  # type: ignore[arg-type]
    outcome = running.run(asked, FakeBlocks(), TrialFolder(tmp_path), lambda _: None)
    assert (outcome.failure, outcome.cause) == (FailureClass.CLIENT_FAILED, "no tokens came")
