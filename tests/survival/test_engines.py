"""What becomes of engines: each ends its own trial, with a class, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.errors import DeploymentError
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Progress
from orchestrator.records import FailureClass
from tests.survival import room, stand_in
from tests.sweep.world import RememberingTracker

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PLANTED = {
    1: "",
    2: "engine_killed",
    3: "replica_killed",
    4: "hangs",
    5: "answers_garbage",
    6: "out_of_memory_in_mid_run",
    7: "out_of_memory_at_start",
}
EXPECTED = {
    2: FailureClass.CRASHED,
    3: FailureClass.CRASHED,
    4: FailureClass.UNRESPONSIVE,
    5: FailureClass.ALL_REQUESTS_FAILED,
    6: FailureClass.OUT_OF_MEMORY,
    7: FailureClass.OUT_OF_MEMORY,
}
KEPT_PAIRS = {2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 0}


class Ran:
    """The sweep with everything planted, then the same again with `--retry-failed`, all mended."""

    def __init__(self, folder: Path) -> None:
        file, results = room.write_experiment(folder, "planted", PLANTED), folder / "r"
        self.tracker = RememberingTracker()
        self.events: list[Progress] = []
        room.use_stand_ins()
        self.result = room.run(file, results, lambda: self.tracker, self.events.append).result
        self.left = room.with_open_files_under(results)
        self.blocks = room.blocks(results)
        room.plant(folder, {})
        again = room.run(file, results, RememberingTracker, self.events.append, retry_failed=True)
        self.mended = again.result
        self.blocks_after = room.blocks(results)
        self.left_after = room.with_open_files_under(results)


@pytest.fixture(scope="module")
def ran(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("survival"))


def by_length(result: SweepResult) -> Mapping[int, TrialResult]:
    return {trial.trial.cell.speculation_length: trial for trial in result.trials}


@pytest.mark.parametrize("length", EXPECTED, ids=lambda length: PLANTED[length])
def test_the_trial_ends_with_its_class_and_keeps_what_was_measured(ran: Ran, length: int) -> None:
    trial = by_length(ran.result)[length]
    assert trial.outcome is not None
    assert trial.outcome.failure == EXPECTED[length], trial.outcome
    assert len(trial.pairs) == KEPT_PAIRS[length]
    assert trial.outcome.cause


@pytest.mark.parametrize("length", [6, 7], ids=lambda length: PLANTED[length])
def test_out_of_memory_comes_with_the_figures(ran: Ran, length: int) -> None:
    outcome = by_length(ran.result)[length].outcome
    assert outcome is not None
    assert "MemoryError" in str(outcome.cause)
    assert "GiB" in str(outcome.cause)
    assert outcome.log_tail


def test_the_sweep_goes_on_past_every_one_of_them(ran: Ran) -> None:
    healthy = by_length(ran.result)[1]
    assert len(healthy.pairs) == 2
    assert all(trial.outcome is not None for trial in ran.result.every)
    assert len(ran.tracker.runs) == len(ran.result.every)


def test_retry_measures_what_is_missing_and_nothing_twice(ran: Ran) -> None:
    assert ran.blocks.items() <= ran.blocks_after.items()
    for length, trial in by_length(ran.mended).items():
        assert len(trial.pairs) == 2, (length, trial.outcome)
        assert trial.outcome is not None
        assert trial.outcome.failure in (None, FailureClass.NO_VALID_PAIRS)  # a busy machine


ARMS = ("baseline", "speculative")


def test_nothing_is_left(ran: Ran, ray_address: str) -> None:
    import ray
    from ray import serve
    from ray.util import list_named_actors, placement_group_table

    assert ran.left == ran.left_after == []
    # Another module's side-by-side engines may still be served: they are not the sweep's.
    assert not [name for name in serve.status().applications if name not in ARMS]
    groups = [group["state"] for group in placement_group_table().values()]
    assert all(state == "REMOVED" for state in groups)
    assert not [name for name in list_named_actors(all_namespaces=True) if "pool" in str(name)]
    engines = [p for p in psutil.process_iter() if "tests.survival.engine" in p_command(p)]
    assert not engines
    assert ray.is_initialized()  # it was not the sweep's to end


def test_an_engine_that_never_gets_ready_is_given_up_and_taken_down(
    ray_address: str, tmp_path: Path
) -> None:
    room.write_experiment(tmp_path, "never", {0: "never_ready"})
    engine = {stand_in.PLANTED: str(tmp_path / "planted.json")}
    deployer = stand_in.deployer(tmp_path / "logs")
    try:
        with pytest.raises(DeploymentError) as raised:
            deployer.start(Deployment(str(tmp_path / "model"), engine), name="never", timeout_s=20)
        assert raised.value.failure == FailureClass.START_TIMEOUT
        assert "within 20 s" in raised.value.cause
        assert not room.with_open_files_under(tmp_path / "logs")
    finally:
        deployer.close()


def p_command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""
