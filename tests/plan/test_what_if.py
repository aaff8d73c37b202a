"""Supposed drafts: what is planned, what is refused, and that nobody takes them for real ones."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.plan.deployment import Speculation
from tests.plan.planned import CHAT, NGRAM, experiment, left_out, plan

WHAT_IF: dict[str, Any] = {
    "method": "what_if",
    "acceptance": [0.5, 0.9],
    "draft_cost_s": [0, 0.002],
    "speculation_length": 4,
}


def test_every_point_is_a_trial_of_its_own_kind_and_says_what_is_supposed() -> None:
    planned = plan(experiment(speculation=[NGRAM, WHAT_IF]))
    supposed = [trial for trial in planned.trials if trial.kind == "what_if"]
    assert [trial.cell.draft for trial in supposed] == [
        "supposed: accepts 0.5, free",
        "supposed: accepts 0.5, 2 ms a token",
        "supposed: accepts 0.9, free",
        "supposed: accepts 0.9, 2 ms a token",
    ]
    assert supposed[1].pair.speculative.speculation == Speculation(
        "what_if", 4, "supposed: accepts 0.5, 2 ms a token",
        {"acceptance": 0.5, "draft_cost_s": 0.002},
    )  # fmt: skip
    assert supposed[0].label().startswith("what-if · what_if(supposed: accepts 0.5, free) K=4")
    assert len({trial.id for trial in planned.trials}) == 1 + 2 + 4


def test_a_cost_left_out_is_none_and_the_same_trial() -> None:
    free = {name: value for name, value in WHAT_IF.items() if name != "draft_cost_s"}
    without = plan(experiment(speculation=[free]))
    spelled = plan(experiment(speculation=[free | {"draft_cost_s": 0}]))
    assert [trial.id for trial in without.trials] == [trial.id for trial in spelled.trials]


def test_no_draft_has_to_be_there() -> None:
    supposed = plan(experiment(speculation=[WHAT_IF])).trials[1].pair.speculative.speculation
    assert supposed is not None and supposed.draft is not None and supposed.draft_model is None


def test_it_is_refused_above_temperature_0() -> None:
    planned = plan(experiment(speculation=[WHAT_IF], temperature=[0.0, 0.8]))
    assert left_out(planned) == {("what_if K=4", "what_if")}
    assert "temperature 0 must hold, got 0.8" in planned.skipped[0].reason
    assert len(planned.trials) == 1 + 4


def test_it_is_refused_where_later_prompts_are_not_known() -> None:
    planned = plan(experiment(speculation=[WHAT_IF], workloads=[CHAT | {"history": "own"}]))
    assert "history: first_turn or reference must hold" in planned.skipped[0].reason


def test_it_is_refused_for_servers_that_already_run() -> None:
    spec = experiment(
        speculation=[WHAT_IF | {"acceptance": 0.5, "draft_cost_s": 0}],
        attach={"baseline": "http://127.0.0.1:1", "speculative": "http://127.0.0.1:2"},
    )
    planned = plan(spec)
    assert "a server that already runs has not got it" in planned.skipped[0].reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"acceptance": 1.2}, "less than or equal to 1"),
        ({"draft_cost_s": -1.0}, "greater than or equal to 0"),
        ({"options": {"x": 1}}, "must be empty"),
        ({"draft": "d"}, "[Ee]xtra"),
    ],
)
def test_what_cannot_be_supposed_is_a_fault(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        experiment(speculation=[WHAT_IF | change])
