"""The trials of an experiment, their order, and the engines they need."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan import deployment
from orchestrator.plan.expand import make_plan
from orchestrator.plan.facts import ClusterFacts
from orchestrator.spec.experiment import Experiment
from tests.plan.planned import CHAT, NGRAM, experiment, facts_for, notice, plan

REWRITE = CHAT | {"name": "rewrite", "prompts": "bundled:rewrite"}


def test_the_grid_is_a_product_and_one_control_is_added() -> None:
    """2 lengths x 2 workloads x 2 batch sizes x 2 temperatures = 16, and the control."""
    planned = plan(experiment(workloads=[CHAT, REWRITE], batch_size=[1, 4], temperature=[0.0, 0.8]))
    assert len(planned.trials) == 17
    assert [trial.kind for trial in planned.trials].count("aa_control") == 1
    assert len({trial.id for trial in planned.trials}) == 17
    assert len({trial.seed for trial in planned.trials}) == 17


def test_engines_start_once_per_deployment_however_many_trials_use_them() -> None:
    """baseline, its relaunched copy, K=2, K=4."""
    planned = plan(experiment(batch_size=[1, 2, 4, 8], temperature=[0.0, 0.5, 1.0]))
    assert [engine.label() for engine in planned.deployments] == [
        "baseline",
        "baseline (relaunched)",
        "ngram K=2",
        "ngram K=4",
    ]
    assert planned.engine_starts == 4
    changes = [trial.pair.key for trial in planned.trials]
    assert sum(a != b for a, b in itertools.pairwise(changes)) == 2


def test_one_engine_serves_every_batch_size_unless_the_file_says_otherwise() -> None:
    planned = plan(experiment(batch_size=[1, 8, 4]))
    assert {d.engine["max_num_seqs"] for d in planned.deployments} == {8}
    given_cap = plan(experiment(batch_size=[1, 8, 4], engine={"max_num_seqs": 16}))
    assert {d.engine["max_num_seqs"] for d in given_cap.deployments} == {16}


def test_the_control_is_the_relaunched_baseline_at_the_largest_load_that_does_not_queue() -> None:
    planned = plan(
        experiment(
            workloads=[CHAT, REWRITE],
            temperature=[0.8, 0.0],
            engine={"max_num_seqs": 8},
            load={"concurrency": [1, 8, 12]},
        )
    )
    control = planned.trials[0]
    assert control.kind == "aa_control"
    assert control.pair.speculative.replica_of == control.pair.baseline.key
    assert control.pair.speculative.speculation is None
    cell = control.cell
    assert (cell.method, cell.speculation_length, cell.draft) == ("none", 0, None)
    assert (cell.workload.name, cell.load.concurrency, cell.sampling.temperature) == ("chat", 8, 0)
    assert "8 in flight" in planned.control


def test_a_ladder_of_concurrency_keeps_the_cap_and_says_where_it_queues() -> None:
    planned = plan(experiment(engine={"max_num_seqs": 4}, load={"concurrency": [1, 4, 6]}))
    here = [t.cell for t in planned.trials if t.cell.speculation_length == 2]
    assert [(cell.batch_size, cell.load.concurrency) for cell in here] == [(1, 1), (4, 4), (4, 6)]
    assert notice(planned, "queueing").text == (
        "6 in flight is above engine.max_num_seqs=4: 2 requests wait, and latency includes the wait"
    )


def test_a_ladder_alone_sets_the_cap_to_its_top() -> None:
    planned = plan(experiment(load={"concurrency": [1, 16]}))
    assert planned.deployments[0].engine["max_num_seqs"] == 16


def test_an_open_load_has_one_trial_per_rate_and_its_control_in_the_middle() -> None:
    planned = plan(
        experiment(
            batch_size=32,
            load={"mode": "open", "rate_rps": [1, 2, 4], "arrivals": "gamma", "burstiness": 0.5},
        )
    )
    rates = [t.cell.load.rate_rps for t in planned.trials if t.cell.speculation_length == 4]
    assert rates == [1.0, 2.0, 4.0]
    assert planned.trials[0].cell.load.rate_rps == 2.0
    assert planned.trials[1].cell.load.burstiness == 0.5
    assert planned.trials[1].protocol.requests_per_block == 32


def test_a_trace_is_part_of_the_identity_by_content() -> None:
    load = {"mode": "open", "arrivals": "trace", "trace": "/a.csv", "time_scale": 0.5}
    spec = experiment(batch_size=8, load=load)
    known = facts_for(spec)
    one, other = (make_plan(spec, prompt_sets=known, trace_hash=h) for h in ("aa", "bb"))
    assert one.trials[1].id != other.trials[1].id
    assert one.trials[1].cell.load.label() == "trace x0.5"


def test_a_point_given_twice_is_measured_once_and_said_so() -> None:
    planned = plan(
        experiment(speculation=[NGRAM, NGRAM | {"speculation_length": [4, 8]}], batch_size=[1, 1])
    )
    assert len(planned.trials) == 1 + 3
    assert [item.rule for item in planned.skipped].count("duplicate") == 2 + 1 + 1 + 1
    assert planned.engine_starts == 5


def test_attached_servers_are_not_started() -> None:
    planned = plan(
        experiment(
            target=None,
            attach={"baseline": "http://a:1", "speculative": "http://b:1", "model": "big"},
            speculation=[{"method": "eagle3", "draft": "head", "speculation_length": 3}],
        )
    )
    assert len(planned.trials) == 2
    comparison = planned.trials[1]
    assert dict(comparison.pair.baseline.engine) == {"attached": "http://a:1"}
    assert dict(comparison.pair.speculative.engine) == {"attached": "http://b:1"}
    assert comparison.pair.baseline.target == "big"
    assert planned.estimate.start_s == 0


def test_a_file_of_prompts_is_named_without_its_folder() -> None:
    """The same file elsewhere is the same measurement: its content decides."""
    first, second = (
        plan(
            experiment(workloads=[CHAT | {"prompts": f"{folder}/mine.jsonl"}]),
            prompt_sets=facts_for(experiment()),
        )
        for folder in ("/here", "/there")
    )
    assert [t.id for t in first.trials] == [t.id for t in second.trials]
    assert first.trials[1].cell.workload.prompts == "file:mine.jsonl"


def test_the_simulated_engine_is_marked() -> None:
    planned = plan(experiment(engine={"simulated": {"acceptance": 0.7}}))
    assert planned.simulated
    assert planned.trials[0].pair.baseline.engine["simulated"] == {"acceptance": 0.7}


def reordered(value: Any, order: list[int]) -> Any:
    """The same mapping with its keys in another order, all the way down."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (order[len(name) % len(order)], name[::-1]))
        return {name: reordered(value[name], order) for name in names}
    return [reordered(item, order) for item in value] if isinstance(value, list) else value


FILE: dict[str, Any] = {
    "name": "test",
    "target": "tiny",
    "engine": {"dtype": "bfloat16", "max_model_len": 2048, "kv": {"b": 1, "a": [1, 2]}},
    "sweep": {
        "speculation": [{**NGRAM, "options": {"x": 1, "y": {"q": 1, "p": 2}}}],
        "batch_size": [1, 4],
        "temperature": [0.0, 0.8],
    },
    "workloads": [CHAT],
    "measure": {"pairs": {"min": 4, "max": 6}, "margin": 0.02},
}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=7))
def test_ids_do_not_depend_on_the_order_of_keys(order: list[int]) -> None:
    ids = [trial.id for trial in plan(Experiment.model_validate(FILE)).trials]
    other = plan(Experiment.model_validate(reordered(FILE, order)))
    assert [trial.id for trial in other.trials] == ids


@pytest.mark.parametrize(
    "change",
    [
        {"target": "other"},
        {"seed": 1},
        {"engine": {"dtype": "float16"}},
        {"measure": {"pairs": {"min": 4, "max": 7}}},
        {"measure": {"margin": 0.01}},
        {"measure": {"confidence": 0.9}},
        {"measure": {"warmup_requests": 2}},
        {"sampling": {"top_p": 0.9}},
        {"sampling": {"seeded": False}},
        {"workloads": [CHAT | {"output_tokens": 33}]},
        {"workloads": [CHAT | {"fixed_length": False}]},
        {"workloads": [CHAT | {"prompts": "bundled:code"}]},
        {"workloads": [CHAT | {"endpoint": "completion"}]},
        {"workloads": [CHAT | {"history": "own"}]},
        {"sweep": FILE["sweep"] | {"temperature": [0.1, 0.7]}},
    ],
    ids=str,
)
def test_every_id_changes_with_anything_that_determines_the_result(change: dict[str, Any]) -> None:
    before = {trial.id for trial in plan(Experiment.model_validate(FILE)).trials}
    after = {trial.id for trial in plan(Experiment.model_validate(FILE | change)).trials}
    assert not before & after


def test_another_option_of_the_method_changes_every_comparison_but_not_the_control() -> None:
    changed = FILE["sweep"] | {"speculation": [NGRAM | {"prompt_lookup_max": 3}]}
    before = plan(Experiment.model_validate(FILE)).trials
    after = plan(Experiment.model_validate(FILE | {"sweep": changed})).trials
    common = {trial.id for trial in before} & {trial.id for trial in after}
    assert common == {before[0].id}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"description": "more words"},
        {"slo": {"ttft_p99_s": 1.0}},
        {"cost": {"device_hour": 1.0}},
        {"tracking": {"experiment": "x"}},
        {"scenarios": ["offline-batch"]},
    ],
    ids=str,
)
def test_no_id_changes_with_what_does_not(change: dict[str, Any]) -> None:
    before = [trial.id for trial in plan(Experiment.model_validate(FILE)).trials]
    assert [trial.id for trial in plan(Experiment.model_validate(FILE | change)).trials] == before


def test_more_temperatures_leave_the_other_trials_as_they_are() -> None:
    """Running a widened sweep again runs only what is missing."""
    few = {t.id for t in plan(experiment(batch_size=[1, 4], temperature=[0.0])).trials}
    more = {t.id for t in plan(experiment(batch_size=[1, 4], temperature=[0.0, 0.5])).trials}
    assert few < more


@pytest.mark.slow
def test_a_hundred_thousand_cells_cost_no_hash_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """50 windows x 20 lengths x 10 batch sizes x 10 temperatures: some hashes an engine, and only
    cheap work a cell, so that it takes seconds."""
    spec = experiment(
        speculation=[
            {
                "method": "ngram",
                "speculation_length": list(range(1, 21)),
                "prompt_lookup_max": list(range(1, 51)),
            }
        ],
        batch_size=list(range(1, 11)),
        temperature=[i / 10 for i in range(10)],
    )
    made = itertools.count()
    original = deployment.content_hash

    def counted(value: Any) -> str:
        next(made)
        return original(value)

    monkeypatch.setattr(deployment, "content_hash", counted)
    planned = plan(spec, count=10**9, cluster=ClusterFacts(gpus=2))
    assert len(planned.trials) == 100_001
    assert planned.engine_starts == 1_002
    assert next(made) < 15 * 1_002
