"""What a person and a machine read of a plan."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from orchestrator.plan.facts import ClusterFacts
from orchestrator.report.plan_text import duration, plan_as_json, render_plan
from tests.plan.planned import CHAT, NGRAM, experiment, plan

QUICKSTART = Path(__file__).parents[2] / "experiments" / "quickstart.yaml"

SPEC = experiment(
    speculation=[NGRAM | {"speculation_length": [2, 4, 40]}],
    workloads=[CHAT, CHAT | {"name": "rewrite", "prompts": "bundled:rewrite"}],
    batch_size=[1, 4],
    temperature=[0.0, 0.8],
    placement={"gpus_per_replica": 0},
)


def test_the_text_holds_trials_engines_estimates_and_reasons() -> None:
    text = render_plan(plan(SPEC, cluster=ClusterFacts(gpus=0, cpus=8)), width=120)
    assert "17 trials, 4 engine starts, 8 cells left out" in text
    assert "A/A control: baseline (relaunched)" in text
    assert "1, 4 in flight" in text
    assert "0, 0.8" in text
    assert "speculation_too_long" in text
    assert "estimate, not a measurement" in text
    assert "host-hours" in text
    assert "baseline_meets_prompts_again" in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_errors_come_before_warnings() -> None:
    text = render_plan(plan(SPEC, count=3))
    assert text.index("Errors: it cannot run like this") < text.index("Warnings")
    assert "prompts_too_few" in text


def test_a_simulated_engine_is_labelled_in_the_first_line() -> None:
    text = render_plan(plan(experiment(engine={"simulated": {}})))
    assert "simulated" in text.splitlines()[0]


def test_an_empty_plan_can_be_shown() -> None:
    spec = experiment(engine={"max_model_len": 10})
    text = render_plan(plan(spec))
    assert "0 trials, 0 engine starts, 2 cells left out" in text
    assert "every cell is left out: context_exceeded (2)" in text


def test_the_json_is_plain_and_carries_every_trial_with_its_id() -> None:
    planned = plan(SPEC)
    value = json.loads(json.dumps(plan_as_json(planned), allow_nan=False))
    assert [trial["id"] for trial in value["trials"]] == [trial.id for trial in planned.trials]
    assert value["engine_starts"] == 4
    assert len(value["skipped"]) == 8
    assert {item["rule"] for item in value["skipped"]} == {"speculation_too_long"}
    assert value["estimate"]["duration_s"][0] < value["estimate"]["duration_s"][1]
    keys = {deployment["key"] for deployment in value["deployments"]}
    assert {trial["baseline"] for trial in value["trials"]} <= keys


def test_durations_as_a_person_says_them() -> None:
    assert [duration(s) for s in (12.4, 89, 91, 3600, 12_000)] == [
        "12 s",
        "89 s",
        "2 min",
        "60 min",
        "3 h 20 min",
    ]


def test_planning_imports_none_of_the_heavy_libraries() -> None:
    """Reading, planning and rendering, in a process of its own."""
    script = """
import sys
from orchestrator.report.plan_text import plan_as_json, render_plan
from orchestrator.plan.expand import make_plan
from orchestrator.plan.facts import PromptSetFacts
from orchestrator.models.facts import read_model_facts
from orchestrator.spec.read import read_experiment
spec = read_experiment(sys.argv[1])
sets = {w.name: PromptSetFacts(1000, w.prompts) for w in spec.workloads}
made = make_plan(spec, prompt_sets=sets)
assert "trials" in render_plan(made) and plan_as_json(made)
heavy = {"ray", "vllm", "mlflow", "pandas", "torch", "transformers", "numpy", "aiohttp"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(QUICKSTART)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
