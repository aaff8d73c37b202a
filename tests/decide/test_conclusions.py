"""What may be said of a sweep, and what may not: constructed results, odd ones too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.decide.conclusion import Conclusion, Kind
from orchestrator.decide.conclusions import conclusions
from orchestrator.decide.message import Message
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.records import FailureClass
from orchestrator.report.said import LANGUAGES, text_of
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from tests.decide.results_by_hand import control_of, result_of, sweep_of, trial_of


def keys(result: SweepResult, kind: Kind | None = None) -> list[str]:
    return [c.key for c in conclusions(result) if kind is None or c.kind is kind]


def the(result: SweepResult, key: str) -> Conclusion:
    (found,) = [c for c in conclusions(result) if c.key == key]
    return found


def ladder(*speedups: float, loads: tuple[int, ...] = (1, 2, 4, 8), **trial: object) -> SweepResult:
    return sweep_of(
        *(result_of(trial_of(load=at, **trial), s) for at, s in zip(loads, speedups, strict=False))  # type: ignore[arg-type]
    )


class TestEffect:
    def test_faster_everywhere(self) -> None:
        result = ladder(1.5, 1.4, 1.3, 1.2)
        found = the(result, "effect.faster_throughout")
        assert found.evidence == tuple(t.trial.id for t in result.trials)
        assert found.confidence is not None
        assert found.confidence.pairs == 24
        assert found.confidence.control == "held"
        # The interval shown is the weakest of those that carry the statement.
        assert found.confidence.speedup == pytest.approx(1.2, rel=0.02)
        assert the(result, "overall.faster").tone == "for"

    def test_never_beyond_the_measured_range(self) -> None:
        result = ladder(1.5, 1.4, 1.3, 1.2)
        found = the(result, "effect.faster_throughout")
        assert found.conditions.load_range == (1.0, 8.0)
        assert "gap.load_above" in [gap.key for gap in found.not_measured]
        assert "switch_off.beyond" in keys(result)
        assert not any(
            c.key in ("switch_off.at", "switch_off.on_from") for c in conclusions(result)
        )

    def test_it_pays_below_a_load(self) -> None:
        result = ladder(1.6, 1.3, 0.9, 0.7)
        assert "effect.falls" in keys(result)
        assert "effect.fits_low_load" in keys(result)
        found = the(result, "switch_off.at")
        assert isinstance(found.values["load"], float)
        assert 2 < found.values["load"] < 4
        assert (found.values["below"], found.values["above"]) == (2.0, 4.0)
        assert the(result, "overall.depends")

    def test_it_pays_above_a_load(self) -> None:
        result = ladder(0.8, 0.9, 1.3, 1.6)
        assert {"effect.rises", "effect.fits_high_load", "switch_off.on_from"} <= set(keys(result))

    def test_contradictory_loads_give_no_switch_off_load(self) -> None:
        result = ladder(1.3, 0.8, 1.3, 0.8)
        assert the(result, "effect.contradictory").tone == "warning"
        assert keys(result, Kind.SWITCH_OFF) == ["switch_off.several"]

    def test_noise_is_neither_faster_nor_equal(self) -> None:
        result = sweep_of(result_of(trial_of(), [1.4, 0.7, 1.3, 0.8, 1.5]))
        assert "effect.cannot_tell" in keys(result)
        assert "overall.cannot_tell" in keys(result)
        assert "risk.not_told" in keys(result)
        assert the(result, "effect.cannot_tell").confidence is None

    def test_equal_is_a_finding(self) -> None:
        assert {"effect.equal_throughout", "overall.equal"} <= set(keys(ladder(1.0, 1.0)))

    def test_a_failed_load_is_named_and_not_claimed(self) -> None:
        bad = result_of(trial_of(load=8), failure=FailureClass.OUT_OF_MEMORY)
        result = sweep_of(result_of(trial_of(load=1), 1.5), bad)
        found = the(result, "effect.faster_partly")
        assert "out_of_memory" in text_of(found.message)
        assert "cell.missing" in [gap.key for gap in found.not_measured]
        assert "stability.failed" in keys(result)
        assert "overall.faster_in_part" in keys(result)

    def test_nothing_measured(self) -> None:
        bad = result_of(trial_of(), failure=FailureClass.START_FAILED, engines=False)
        result = sweep_of(bad)
        assert the(result, "overall.nothing_measured").confidence is None
        assert keys(result, Kind.EFFECT) == ["effect.not_measured", "length.not_measured"]

    def test_a_running_sweep_has_no_effect_yet(self) -> None:
        result = sweep_of(result_of(trial_of(), [1.5], ended=False))
        assert "effect.not_measured" in keys(result)

    def test_figures_that_point_the_other_way(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.5, ttft_ratio=0.5))
        found = the(result, "effect.trade_off")
        assert "time to first token" in text_of(found.message)
        assert "effect.trade_off" not in keys(sweep_of(result_of(trial_of(), 1.5)))

    def test_an_empty_sweep(self) -> None:
        assert keys(sweep_of())[0] == "overall.nothing_planned"


class TestLength:
    LENGTHS = {"short": 40.0, "long": 2000.0}  # noqa: RUF012

    def over(self, short: float, long: float) -> SweepResult:
        return sweep_of(
            result_of(trial_of(workload="short"), short),
            result_of(trial_of(workload="long"), long),
            lengths=self.LENGTHS,
        )

    def test_it_holds(self) -> None:
        found = the(self.over(1.4, 1.3), "length.holds")
        assert found.conditions.input_tokens == (40.0, 2000.0)
        assert "gap.length_and_topic" in [gap.key for gap in found.not_measured]

    def test_it_falls_and_grows(self) -> None:
        assert "length.falls" in keys(self.over(1.4, 0.9))
        assert "length.grows" in keys(self.over(0.9, 1.4))

    def test_it_cannot_be_told(self) -> None:
        assert "length.cannot_tell" in keys(self.over(1.0, 1.0))

    def test_one_length_says_nothing_of_length(self) -> None:
        found = the(ladder(1.5, 1.4), "length.not_measured")
        assert found.tone == "unknown"


class TestChoice:
    def test_one_leads_alone(self) -> None:
        result = sweep_of(
            result_of(trial_of(k=2), 1.2), result_of(trial_of(method="eagle", draft="h", k=2), 1.6)
        )
        found = the(result, "choice.one")
        assert found.values["draft"] == "eagle(h) K=2"

    def test_equals_are_not_ranked(self) -> None:
        result = sweep_of(result_of(trial_of(k=2), 1.30), result_of(trial_of(k=4), 1.301))
        text = text_of(the(result, "choice.one_among").message)
        assert "not told from" in text

    def test_no_leader_where_none_is_faster(self) -> None:
        slower = sweep_of(result_of(trial_of(k=2), 0.8), result_of(trial_of(k=4), 0.7))
        assert "choice.off" in keys(slower)
        wild = [1.5, 0.7, 1.4, 0.6]
        unknown = sweep_of(result_of(trial_of(k=2), wild), result_of(trial_of(k=4), wild))
        assert "choice.no_leader" in keys(unknown)
        assert "choice.off" not in keys(unknown)

    def test_the_best_length_at_the_edge(self) -> None:
        result = sweep_of(result_of(trial_of(k=2), 1.2), result_of(trial_of(k=4), 1.5))
        assert [gap.key for gap in the(result, "choice.length_edge").not_measured] == ["gap.longer"]
        short = sweep_of(result_of(trial_of(k=2), 1.5), result_of(trial_of(k=4), 1.2))
        assert "choice.length_short" in keys(short)

    def test_the_confirmation_decides(self) -> None:
        first = result_of(trial_of(), 1.4)

        def again(*ratios: float) -> list[str]:
            trial = trial_of(kind="confirmation", seed=1)
            return keys(sweep_of(first, result_of(trial, ratios)), Kind.CHOICE)

        assert again(1.38, 1.39, 1.4, 1.38) == ["choice.confirmed"]
        assert again(1.0, 1.0, 1.0, 1.001) == ["choice.confirmation_failed"]
        assert again(1.4, 0.8, 1.5, 0.7) == ["choice.confirmation_open"]
        assert keys(sweep_of(first), Kind.CHOICE) == ["choice.not_confirmed"]


class TestAcceptance:
    def test_measured_stands_beside_needed(self) -> None:
        """Half of 50 decoded tokens accepted: 2 tokens a step; at 1.25x, 1.6 would break even."""
        result = sweep_of(result_of(trial_of(), 1.25, accepted_share=0.5))
        found = the(result, "acceptance.enough")
        (item,) = found.values["per_load"]  # type: ignore[misc]
        assert isinstance(item, Message)
        assert item.values["measured"] == pytest.approx(2.0)
        assert item.values["needed"] == pytest.approx(1.6, rel=0.02)

    def test_too_low_and_nothing(self) -> None:
        assert "acceptance.too_low" in keys(sweep_of(result_of(trial_of(), 0.8)))
        none = sweep_of(result_of(trial_of(), 0.8, accepted_share=0.0))
        assert "acceptance.nothing" in keys(none)

    def test_without_counters_it_is_not_available(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.2, accepted_share=None))
        assert keys(result, Kind.ACCEPTANCE) == ["acceptance.not_available"]


class TestControl:
    def test_a_failed_control_silences_every_claim_of_speed(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.5), control=control_of(1.2))
        assert keys(result)[0] == "overall.control_failed"
        speed = {Kind.EFFECT, Kind.SWITCH_OFF, Kind.CHOICE, Kind.ACCEPTANCE}
        assert not [c for c in conclusions(result) if c.kind in speed]

    def test_differences_below_the_floor_are_named(self) -> None:
        wide = control_of([1.09, 0.92, 1.1, 0.91, 1.08, 0.92])  # type: ignore[arg-type]
        result = sweep_of(result_of(trial_of(), 1.06), control=wide)
        assert "risk.below_floor" in keys(result)
        assert "risk.wide_control" in keys(result)

    def test_without_one_it_is_said(self) -> None:
        result = replace(sweep_of(result_of(trial_of(), 1.5)), controls=())
        assert "risk.no_control" in keys(result)
        confidence = the(result, "effect.faster_here").confidence
        assert confidence is not None
        assert confidence.control == "not_measured"


def suite(ok: bool | None, *cases: CaseStatus, name: str = "quality") -> SuiteResult:
    results = tuple(CaseResult(f"c{i}", s, "must", "seen") for i, s in enumerate(cases))
    return SuiteResult(name, trial_of().pair.key, "ngram K=4", "in short", ok, results)


class TestQuality:
    def test_not_run_is_not_passed(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.5))
        assert the(result, "quality.not_measured").tone == "unknown"
        assert "gap.quality" in [g.key for g in the(result, "overall.faster").not_measured]

    def test_faster_with_findings_is_no_recommendation(self) -> None:
        bad = suite(False, CaseStatus.FAIL)
        result = replace(sweep_of(result_of(trial_of(), 1.5)), suites=(bad,))
        assert keys(result)[0] == "overall.faster_but_findings"
        assert "suite.findings" in keys(result)

    def test_a_suite_that_contradicts_itself(self) -> None:
        odd = suite(True, CaseStatus.DIFFERS)
        result = replace(sweep_of(result_of(trial_of(), 1.5)), suites=(odd,))
        assert the(result, "suite.contradictory").tone == "warning"

    def test_too_little_evidence(self) -> None:
        result = replace(sweep_of(result_of(trial_of(), 1.5)), suites=(suite(None),))
        assert the(result, "suite.not_enough").tone == "unknown"

    def test_a_soak_answers_for_stability(self) -> None:
        soak = suite(True, CaseStatus.PASS, name="soak")
        result = replace(sweep_of(result_of(trial_of(), 1.5)), suites=(soak,))
        assert "stability.not_measured" not in keys(result)
        assert "risk.too_short" not in keys(result)


class TestResourcesAndBottleneck:
    def test_the_draft_takes_kv_capacity(self) -> None:
        text = text_of(the(sweep_of(result_of(trial_of(), 1.5)), "resources.measured").message)
        assert "KV capacity 20,000 → 18,000 tokens (-10.0 %)" in text
        assert "shortest start-up 20 → 25 s" in text

    def test_energy_where_power_is_known(self) -> None:
        watts = {"baseline": {"gpu_power_w": 100.0}, "speculative": {"gpu_power_w": 120.0}}
        result = sweep_of(result_of(trial_of(), 1.5, samples=watts))
        assert "J per output token" in text_of(the(result, "resources.measured").message)
        gaps = the(sweep_of(result_of(trial_of(), 1.5)), "resources.measured").not_measured
        assert "gap.energy_j_per_token" in [gap.key for gap in gaps]

    def test_serial_decoding_and_prefill(self) -> None:
        assert "bottleneck.decoding" in keys(sweep_of(result_of(trial_of(), 1.5)))
        quick = sweep_of(result_of(trial_of(), 1.5, tpot_s=0.0005))
        assert "bottleneck.prefill" in keys(quick)

    def test_a_queue_comes_first(self) -> None:
        queued = sweep_of(result_of(trial_of(load=128), 1.5, tpot_s=0.0005))
        assert "bottleneck.queue" in keys(queued)


class TestRisks:
    def test_they_appear_only_when_they_apply(self) -> None:
        clean = keys(sweep_of(result_of(trial_of(), 1.5)), Kind.RISK)
        assert clean == ["risk.tied", "risk.too_short"]

    def test_bundled_prompts_are_nobodys_production(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.5), sources={"chat": "bundled:chat"})
        assert "risk.unlike_production" in keys(result)

    def test_throughput_of_an_open_loop(self) -> None:
        result = sweep_of(result_of(trial_of(mode="open", load=2.0), 1.5))
        assert "risk.throughput_of_open_loop" in keys(result)

    def test_simulated_and_modified(self) -> None:
        base = sweep_of(result_of(trial_of(), 1.5))
        product = {"product": {"modified": True, "revision": "abc"}}
        manifest = {**base.manifest, "simulated": True, "environment": product}
        found = keys(replace(base, manifest=manifest), Kind.RISK)
        assert found[0] == "risk.simulated"
        assert "risk.modified" in found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_conclusion_can_be_said(language: str) -> None:
    result = replace(
        sweep_of(
            *(result_of(trial_of(load=at), s) for at, s in ((1, 1.6), (2, 1.3), (4, 0.9))),
            *(result_of(trial_of(load=at, k=2), s) for at, s in ((1, 1.2), (2, 1.0), (4, 0.7))),
            result_of(trial_of(load=8), failure=FailureClass.CRASHED),
            sources={"chat": "bundled:chat"},
        ),
        suites=(suite(False, CaseStatus.FAIL), suite(None, name="soak")),
    )
    for conclusion in conclusions(result):
        assert text_of(conclusion.message, language)  # type: ignore[arg-type]
        assert all(text_of(gap, language) for gap in conclusion.not_measured)  # type: ignore[arg-type]
