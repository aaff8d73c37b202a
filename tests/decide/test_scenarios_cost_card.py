"""Scenario fit, cost and score card on constructed results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.decide.cost import cost_per_mtok, costs
from orchestrator.decide.scenario_fit import Fit, scenario_fit, scenario_fits
from orchestrator.decide.score_card import Status, score_card
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.errors import SpecError
from orchestrator.measure.slo import SloBounds
from orchestrator.records import FailureClass
from orchestrator.report.said import LANGUAGES, text_of
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from orchestrator.spec.goals import SCENARIOS
from orchestrator.spec.scenario import Profile, read_profile
from tests.decide.results_by_hand import control_of, result_of, sweep_of, trial_of


def suite(name: str, ok: bool | None = True) -> SuiteResult:
    case = CaseResult("c", CaseStatus.FAIL if ok is False else CaseStatus.PASS, "must", "seen")
    return SuiteResult(name, trial_of().pair.key, "ngram K=4", "sound", ok, (case,))


def profile(**changes: object) -> Profile:
    plain = read_profile("offline-batch").model_dump(mode="json")
    return Profile.model_validate({**plain, **changes})


class TestScenario:
    def test_the_five_profiles_are_files_that_can_be_read(self) -> None:
        assert [read_profile(name).name for name in SCENARIOS] == list(SCENARIOS)

    def test_it_fits_when_everything_is_as_needed(self) -> None:
        result = replace(
            sweep_of(*(result_of(trial_of(load=at), 1.4) for at in (1, 4))),
            suites=(suite("quality"),),
        )
        found = scenario_fit(result, read_profile("offline-batch"))
        assert found.fit is Fit.FITS
        assert found.operating_point is not None
        assert found.operating_point.trial.trial.cell.load.concurrency == 4  # most throughput
        assert found.evidence == tuple(t.trial.id for t in result.trials)

    def test_what_was_not_measured_is_a_condition(self) -> None:
        found = scenario_fit(sweep_of(result_of(trial_of(), 1.4)), read_profile("offline-batch"))
        assert found.fit is Fit.CONDITIONS
        assert "suite quality not run" in " ".join(text_of(c) for c in found.conditions)

    def test_a_required_suite_that_was_not_run_leaves_it_open(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), lengths={"chat": 800})
        found = scenario_fit(result, read_profile("code-assistance"))
        assert found.fit is Fit.NOT_ENOUGH
        assert found.operating_point is None

    def test_slower_does_not_fit(self) -> None:
        found = scenario_fit(sweep_of(result_of(trial_of(), 0.8)), read_profile("offline-batch"))
        assert found.fit is Fit.DOES_NOT_FIT
        assert "throughput 0.82x" in text_of(found.reason)

    def test_an_objective_that_is_broken_refuses_however_fast_it_is(self) -> None:
        tight = profile(slo={"ttft_p95_s": 0.05})
        found = scenario_fit(sweep_of(result_of(trial_of(), 1.4)), tight)
        assert found.fit is Fit.DOES_NOT_FIT
        assert "p95 of time to first token is 0.1 s" in text_of(found.reason)

    def test_without_a_gain_there_is_no_reason_for_it(self) -> None:
        """No objective is broken and nothing required is worse, but nothing is better either."""
        service = read_profile("customer-service")
        equal = scenario_fit(sweep_of(result_of(trial_of(), 1.0)), service)
        assert equal.fit is Fit.DOES_NOT_FIT
        assert "end-to-end latency 1.00x" in text_of(equal.reason)
        noisy = sweep_of(result_of(trial_of(), [1.5, 0.7, 1.4, 0.6]))
        assert scenario_fit(noisy, service).fit is Fit.NOT_ENOUGH
        assert scenario_fit(sweep_of(result_of(trial_of(), 1.5)), service).fit is Fit.CONDITIONS

    def test_headroom_is_what_the_tightest_objective_leaves(self) -> None:
        loose = profile(slo={"ttft_p95_s": 0.2})
        found = scenario_fit(sweep_of(result_of(trial_of(), 1.4)), loose)
        assert found.operating_point is not None
        assert found.operating_point.headroom == pytest.approx(0.5)

    def test_only_some_loads(self) -> None:
        result = sweep_of(result_of(trial_of(load=1), 1.4), result_of(trial_of(load=4), 0.8))
        found = scenario_fit(result, read_profile("offline-batch"))
        assert found.fit is Fit.CONDITIONS
        assert "not at 4 in flight" in " ".join(text_of(c) for c in found.conditions)

    def test_another_shape_is_no_evidence(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), lengths={"chat": 50})
        found = scenario_fit(result, read_profile("code-assistance"))
        assert found.fit is Fit.NOT_ENOUGH
        assert "at least 500 input tokens" in text_of(found.reason)

    def test_a_failed_control_leaves_everything_open(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), control=control_of(1.3))
        found = scenario_fit(result, read_profile("offline-batch"))
        assert (found.fit, found.operating_point) == (Fit.NOT_ENOUGH, None)

    def test_ones_own_scenario_is_a_file(self, tmp_path: Path) -> None:
        text = (Path("orchestrator/scenarios") / "offline-batch.yaml").read_text()
        own = tmp_path / "mine.yaml"
        own.write_text(text.replace("name: offline-batch", "name: mine"))
        assert read_profile(str(own)).name == "mine"
        own.write_text(text.replace("speedup_throughput", "speedup_troughput"))
        with pytest.raises(SpecError, match=r"mine\.yaml:\d+ figures\[0\]\.figure: must be one of"):
            read_profile(str(own))

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_every_answer_can_be_said(self, language: str) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), result_of(trial_of(load=2), 0.7))
        for found in scenario_fits(result):
            assert text_of(found.reason, language)  # type: ignore[arg-type]
            assert all(text_of(c, language) for c in found.conditions)  # type: ignore[arg-type]


PRICE = {"device_hour": 3.6, "currency": "EUR", "devices": 2}


class TestCost:
    def test_a_million_tokens(self) -> None:
        """Two devices at 3.6 an hour are 0.002 a second; 1000 tok/s: 1e6 tokens take 1000 s."""
        assert cost_per_mtok(1000.0, 3.6, 2) == pytest.approx(2.0)
        assert cost_per_mtok(0.0, 3.6, 2) is None

    def test_no_money_without_a_price(self) -> None:
        (found,) = costs(sweep_of(result_of(trial_of(), 1.4)))
        (at,) = found.at
        assert found.currency is None
        assert set(at.cost_per_mtok.values()) == {None}
        assert at.sensitivity == {}
        assert at.cheaper is True  # per device-hour, which needs no price

    def test_both_arms_and_the_sensitivity(self) -> None:
        (found,) = costs(sweep_of(result_of(trial_of(), 1.4), cost=PRICE))
        (at,) = found.at
        a, b = at.cost_per_mtok["baseline"], at.cost_per_mtok["speculative"]
        assert a is not None and b is not None
        assert at.cost_ratio is not None
        assert b / a == pytest.approx(at.cost_ratio.value, rel=0.01)
        assert at.sensitivity[2.0]["baseline"] == pytest.approx(2 * a)
        assert found.currency == "EUR"

    def test_only_tokens_within_the_objectives_count(self) -> None:
        """The baseline's 0.02 s a token break a bound of 0.018; the speculative arm keeps it."""
        slo = SloBounds(tpot_s=0.018)
        result = sweep_of(
            result_of(trial_of(), 1.4, slo=slo), cost=PRICE, slo={"tpot_p95_s": 0.018}
        )
        (found,) = costs(result)
        assert found.within_slo
        assert found.at[0].cost_per_mtok["baseline"] is None
        assert found.at[0].cost_per_mtok["speculative"] is not None
        assert found.at[0].cost_ratio is None

    def test_the_draft_pays_below_a_load(self) -> None:
        loads = ((1, 1.5), (4, 1.2), (16, 0.8))
        (found,) = costs(sweep_of(*(result_of(trial_of(load=at), s) for at, s in loads)))
        (even,) = found.pays_from.values()
        assert even.load is not None
        assert 4 < even.load < 16

    def test_peoples_work_sets_a_volume(self) -> None:
        work = {"upkeep_hours_per_month": 4.0, "integration_hours": 12.0, "hour_price": 50.0}
        (found,) = costs(sweep_of(result_of(trial_of(), 1.4), cost={**PRICE, "operations": work}))
        assert found.work_hours_per_month == 5.0
        assert found.work_per_month == 250.0
        at = found.at[0]
        a, b = at.cost_per_mtok["baseline"], at.cost_per_mtok["speculative"]
        assert a is not None and b is not None
        assert at.break_even_mtok_per_month == pytest.approx(250.0 / (a - b))
        dearer = sweep_of(result_of(trial_of(), 0.8), cost={**PRICE, "operations": work})
        assert costs(dearer)[0].at[0].break_even_mtok_per_month is None

    def test_an_empty_questionnaire_is_not_zero_hours(self) -> None:
        (found,) = costs(sweep_of(result_of(trial_of(), 1.4), cost={**PRICE, "operations": {}}))
        assert found.work_hours_per_month is None


def statuses(result: SweepResult) -> dict[str, Status]:
    return {dimension.name: dimension.status for dimension in score_card(result)}


class TestScoreCard:
    def test_eight_dimensions_and_what_a_performance_sweep_says_of_them(self) -> None:
        found = statuses(sweep_of(result_of(trial_of(), 1.4)))
        assert len(found) == 8
        measured = {name for name, status in found.items() if status is Status.MEASURED}
        assert measured == {"performance", "usability", "compatibility", "cost"}

    def test_suites_answer_for_their_dimension(self) -> None:
        base = sweep_of(result_of(trial_of(), 1.4))
        found = statuses(replace(base, suites=(suite("quality"), suite("functional", ok=False))))
        assert found["effectiveness"] is Status.MEASURED
        assert found["functional_completeness"] is Status.FAILED
        assert statuses(replace(base, suites=(suite("soak", ok=None),)))["stability"] is (
            Status.NOT_MEASURED
        )
        # Odd input tells of a part of stability only.
        assert statuses(replace(base, suites=(suite("boundary"),)))["stability"] is (
            Status.NOT_MEASURED
        )

    def test_failures_are_failed_with_evidence(self) -> None:
        result = sweep_of(result_of(trial_of(), failure=FailureClass.CRASHED, engines=False))
        card = {d.name: d for d in score_card(result)}
        assert card["performance"].status is Status.FAILED
        assert card["performance"].evidence == (result.trials[0].trial.id,)
        assert card["usability"].status is Status.NOT_MEASURED

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_every_line_can_be_said(self, language: str) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), cost=PRICE)
        assert all(text_of(d.summary, language) for d in score_card(result))  # type: ignore[arg-type]
        assert all(text_of(d.summary, language) for d in score_card(sweep_of()))  # type: ignore[arg-type]
