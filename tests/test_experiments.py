"""Every experiment that comes with the product reads and plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.plan.expand import make_plan
from orchestrator.plan.facts import ClusterFacts, ModelFacts, PromptSetFacts
from orchestrator.plan.plan import Plan
from orchestrator.spec.read import read_experiment
from orchestrator.workloads.load import load_prompts

FOLDER = Path(__file__).parents[1] / "experiments"
FILES = sorted(FOLDER.glob("*.yaml"))
SMOLLM2 = ModelFacts(vocab_size=49152, max_position_embeddings=8192, parameter_bytes=269_000_000)


def planned(file: Path) -> Plan:
    experiment = read_experiment(file)
    sets = {}
    for workload in experiment.workloads:
        loaded = load_prompts(workload.prompts, base=FOLDER)
        sets[workload.name] = PromptSetFacts.of(loaded.hash, loaded.prompts)
    on_cpu = experiment.placement.gpus_per_replica == 0
    return make_plan(
        experiment,
        prompt_sets=sets,
        models={"smollm2-135m-instruct": SMOLLM2},
        cluster=ClusterFacts(gpus=0, cpus=2) if on_cpu else ClusterFacts(gpus=4, cpus=64),
    )


def test_there_is_one_per_question() -> None:
    assert {file.stem for file in FILES} >= {
        "quickstart",
        "which-draft",
        "which-length",
        "when-to-switch-off",
        "long-input",
        "gpu-8b",
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_can_run_as_it_is(file: Path) -> None:
    plan = planned(file)
    assert [str(error) for error in plan.errors] == []
    assert len(plan.trials) > 1
    assert not plan.skipped


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_says_which_question_it_answers(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "$schema=../docs/experiment.schema.json" in text.splitlines()[0]
    assert "?" in "".join(text.splitlines()[1:4])


def test_the_quickstart_asks_no_prompt_twice() -> None:
    plan = planned(FOLDER / "quickstart.yaml")
    assert len(plan.trials) == 17
    assert plan.engine_starts == 4
    # What remains is a defect of the engine on a CPU that the reader has to know.
    assert [notice.rule for notice in plan.warnings] == ["cpu_speculative_sampling"]


def test_the_ladder_takes_its_engine_from_the_serve_config() -> None:
    engine = read_experiment(FOLDER / "when-to-switch-off.yaml").engine
    assert engine["dtype"] == "bfloat16"
    assert engine["max_num_seqs"] == 8
    assert engine["enable_prefix_caching"] is False
    assert "from" not in engine
