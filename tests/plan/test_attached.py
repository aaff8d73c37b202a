"""What differs when the servers are somebody else's."""

from __future__ import annotations

from typing import Any

from orchestrator.plan.plan import Plan
from orchestrator.plan.prompts import prompts_needed
from tests.plan.planned import experiment, notice, plan, rules

ONE = [{"method": "ngram", "speculation_length": 4}]


def attached(baseline: str, speculative: str, *, count: int = 10_000, **more: Any) -> Plan:
    servers = {"baseline": baseline, "speculative": speculative} | more
    return plan(
        experiment(target=None, speculation=ONE, attach=servers, batch_size=[1, 2]), count=count
    )


def test_the_control_is_the_same_server_again_and_the_plan_says_so() -> None:
    planned = attached("http://a:1", "http://a:2")
    control = planned.trials[0]
    assert control.pair.speculative.engine == control.pair.baseline.engine
    assert control.pair.speculative.label() == "baseline (again)"
    assert planned.control.startswith("baseline against the same server again")
    assert "it does not relaunch it" in notice(planned, "attached_control").text
    assert planned.engine_starts == 0


def test_the_baseline_server_never_meets_a_prompt_of_the_control_again() -> None:
    """It cannot be told to forget, and the speculative server has not met it: 3 trials in a row."""
    planned = attached("http://a:1", "http://a:2")
    expected, begin = [], 0
    for trial in planned.trials:
        expected.append(begin)
        begin += prompts_needed(trial)
    assert list(planned.prompt_starts) == expected


def test_and_so_it_needs_as_many_prompts_as_all_trials_together() -> None:
    needed = sum(prompts_needed(trial) for trial in attached("http://a:1", "http://a:2").trials)
    assert attached("http://a:1", "http://a:2", count=needed).errors == ()
    (error,) = attached("http://a:1", "http://a:2", count=needed - 1).errors
    assert error.rule == "prompts_too_few"
    assert f"needs {needed} prompts" in error.text


def test_where_the_servers_are_decides_what_to_beware_of() -> None:
    assert "attached_together" in rules(attached("http://a:1", "http://a:2"))
    apart = attached("http://a:1", "https://b:1")
    assert notice(apart, "attached_apart").severity == "warning"
    assert notice(attached("http://a:1", "http://a:1"), "attached_same").severity == "warning"
    trusting = attached("https://a:1", "https://a:2", tls_verify=False)
    assert notice(trusting, "tls_unverified").severity == "warning"
