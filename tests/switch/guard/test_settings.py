from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.switch.guard import GuardSettings, settings_from
from orchestrator.switch.guard.settings import quantile_of

DECIDED: dict[str, Any] = {
    "acceptance_length_min": 1.6,
    "acceptance_rate_min": 0.31,
    "latency_max_s": {"ttft_p99_s": 0.5, "tpot_mean_s": 0.05, "itl_p95_s": 0.1},
    "latency_from": "slo",
    "load_max": 8,
    "load_unit": "in_flight",
}


def test_an_empty_section_is_one_with_every_default() -> None:
    assert GuardSettings.model_validate({}) == GuardSettings()


def test_names_of_objectives() -> None:
    assert quantile_of("tpot_p95_s") == ("tpot_s", 0.95)
    assert quantile_of("itl_p95_s") is None and quantile_of("tpot_mean_s") is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"slo": {"tpot_mean_s": 0.1}}, "quantile to be watched live"),
        ({"slo": {"ttft_p99_ms": 500.0}}, "must be <metric>_<statistic>_s"),
        ({"cool_down": {"first_s": 30.0}}, "hold_s <= first_s <= max_s"),
        ({"probe": {"min_s": 9000.0}}, "min_s <= max_s"),
        ({"error_rate": 0.1}, "Extra inputs"),
        ({"acceptance": {"floor": 1.5}}, "less than or equal to 1"),
        ({"slower_than_baseline": 0.9}, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        GuardSettings.model_validate(given)


def test_limits_of_a_decision() -> None:
    found = settings_from(DECIDED)
    assert found.settings.acceptance.floor == 0.31
    assert found.settings.slo == {"ttft_p99_s": 0.5}
    assert found.left_out == ("tpot_mean_s", "itl_p95_s")


def test_what_the_operator_wrote_wins_key_by_key() -> None:
    given = {"acceptance": {"drop_to": 0.6}, "slo": {"e2e_p95_s": 9.0}}
    settings = settings_from(DECIDED, given=given).settings
    assert (settings.acceptance.floor, settings.acceptance.drop_to) == (0.31, 0.6)
    assert settings.slo == {"e2e_p95_s": 9.0}
