"""The search section: presets, and everything that is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.spec.search import PRESETS
from tests.plan.planned import experiment, notice, plan, rules
from tests.spec.written import GOOD, only_fault, read_text


@pytest.mark.parametrize(
    ("text", "key", "rule"),
    [
        ("search: {algorithm: optuna}\n", "search.algorithm", "needs a budget"),
        ("search: {preset: best-speedup}\n", "search.algorithm", "needs a budget"),
        ("search: {trials: 3}\n", "search.trials", "acts only with algorithm"),
        ("search: {preset: best}\n", "search.preset", "must be one of best-speedup"),
        ("search: {objective: speedup}\n", "search.objective", "must be one of speedup_throughput"),
        (
            "search: {objective: [speedup_tpot, speedup_tpot]}\n",
            "search.objective",
            "must not name an objective twice",
        ),
        (
            "search: {scheduler: asha, objective: [speedup_tpot, tpot_p95_s]}\n",
            "search.scheduler",
            "needs one objective",
        ),
        (
            "search: {preset: within-slo, trials: 9}\n",
            "search.objective",
            "needs service objectives",
        ),
        (
            "search: {algorithm: random, trials: 2}\nload: {refine: 3}\n",
            "load.refine",
            "acts only with search.algorithm: grid",
        ),
        (
            "search: {scheduler: median}\nmeasure: {looks: once}\n",
            "measure.looks",
            "must be every together with a scheduler",
        ),
        ("search: {algorithm: random, minutes: 0}\n", "search.minutes", "must be > 0"),
        ("search: {algorithm: random, trials: 2.5}\n", "search.trials", "must be a whole number"),
    ],
)
def test_a_fault_names_its_key_and_its_rule(tmp_path: Path, text: str, key: str, rule: str) -> None:
    fault = only_fault(tmp_path, GOOD + text)
    assert fault.key == key
    assert fault.rule.startswith(rule)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_used(tmp_path: Path, name: str) -> None:
    text = f"search: {{preset: {name}, minutes: 5}}\nslo: {{tpot_p95_s: 0.1}}\n"
    found = read_text(tmp_path, GOOD + text)
    for key, value in PRESETS[name][1].items():
        kept = getattr(found.search, key)
        assert (list(kept) if key == "objective" else kept) == value
    assert found.search.minutes == 5


def test_keys_beside_a_preset_win(tmp_path: Path) -> None:
    text = "search: {preset: best-speedup, scheduler: none, trials: 4, objective: speedup_e2e}\n"
    search = read_text(tmp_path, GOOD + text).search
    assert (search.algorithm, search.scheduler, search.objective) == (
        "optuna",
        "none",
        ("speedup_e2e",),
    )


def test_the_plan_says_what_is_searched_and_refuses_points_that_no_cell_has() -> None:
    search = {"algorithm": "optuna", "trials": 1, "first": [{"speculation_length": 4}]}
    planned = plan(experiment(search=search, slo={"tpot_p95_s": 0.1}))
    assert planned.search is not None
    assert (planned.search.candidates, planned.search.most_trials) == (2, 1)
    assert len(planned.search.first) == 1
    assert planned.search.constraints == {"tpot_p95_s": 0.1}
    assert "first_unknown" not in rules(planned)
    wrong = plan(experiment(search={**search, "first": [{"speculation_length": 5}]}))
    said = notice(wrong, "first_unknown")
    assert said.severity == "error"
    assert "speculation_length: 2, 4" in str(said)
    assert plan(experiment()).search is None
