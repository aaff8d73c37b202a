"""What is deployed, with which schedule, watched by which limits, void after which change."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.local.environment import environment_snapshot
from orchestrator.cli import main
from orchestrator.decide.decision_document import read_decision
from orchestrator.decide.expiry import Fact, check_facts, facts_of
from orchestrator.decide.guard import acceptance_floor, guard_of
from orchestrator.decide.recommendation import Advice, recommend
from orchestrator.decide.schedule import ranges_of, schedule_of, verified
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.errors import SpecError
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.records import FailureClass
from orchestrator.report.decision_file import DECISION_FILE, DEPLOY_FILE, write_decision
from orchestrator.report.said import text_of
from orchestrator.report.serve_config import vllm_serve
from orchestrator.run.suites.record import CaseResult, CaseStatus, SuiteResult
from orchestrator.serving.serve_file import read_serve_file
from tests.decide.results_by_hand import control_of, result_of, sweep_of, trial_of

CONFIRMED = [1.38, 1.39, 1.4, 1.38]


def again(ratios: Sequence[float] = CONFIRMED, **trial: object) -> TrialResult:
    return result_of(trial_of(kind="confirmation", seed=1, **trial), ratios)  # type: ignore[arg-type]


class TestAdvice:
    def test_on_when_found_twice(self) -> None:
        found = recommend(sweep_of(result_of(trial_of(), 1.4), again()))
        assert found.advice is Advice.ON
        assert found.deployment == trial_of().pair.speculative

    def test_a_candidate_when_found_once(self) -> None:
        assert recommend(sweep_of(result_of(trial_of(), 1.4))).advice is Advice.ON_UNCONFIRMED

    def test_off_when_not_found_again(self) -> None:
        found = recommend(sweep_of(result_of(trial_of(), 1.4), again([1.0, 1.0, 1.0, 1.001])))
        assert (found.advice, found.deployment) == (Advice.OFF, None)

    def test_off_when_unsound_however_fast(self) -> None:
        case = CaseResult("c", CaseStatus.DIFFERS, "must", "seen")
        suite = SuiteResult("quality", trial_of().pair.key, "l", "1 finding", False, (case,))
        base = sweep_of(result_of(trial_of(), 1.4), again())
        assert recommend(replace(base, suites=(suite,))).advice is Advice.OFF

    def test_no_evidence_is_no_advice(self) -> None:
        failed = result_of(trial_of(), failure=FailureClass.CRASHED)
        wild = result_of(trial_of(), [1.5, 0.7, 1.4, 0.6])
        shaken = sweep_of(result_of(trial_of(), 1.4), control=control_of(1.3))
        for result in (sweep_of(failed), sweep_of(wild), shaken, sweep_of()):
            assert recommend(result).advice is Advice.NOT_DECIDED

    def test_it_says_where_and_that_the_rest_does_not_follow(self) -> None:
        found = recommend(
            sweep_of(
                result_of(trial_of(load=1), 1.4),
                result_of(trial_of(load=8), 0.8),
                result_of(trial_of(load=16), [1.5, 0.7, 1.4, 0.6]),
                again(load=1),
            )
        )
        text = text_of(found.reason)
        assert text.startswith("On for chat at T=0, 1 in flight: ngram K=4, throughput 1.3")
        assert "of the other 2 cells, slower: 1; not shown to be faster: 1" in text
        assert "rest" not in text_of(
            recommend(sweep_of(result_of(trial_of(), 1.4), again())).reason
        )

    def test_slower_everywhere_is_off(self) -> None:
        assert recommend(sweep_of(result_of(trial_of(), 0.8))).advice is Advice.OFF


def scheduled(*, verify: Sequence[tuple[int, float]] = ()) -> SweepResult:
    """K=4 leads alone, K=2 at 4 in flight, nothing pays at 16."""
    grid = {(4, 1): 1.6, (4, 4): 1.1, (4, 16): 0.8, (2, 1): 1.3, (2, 4): 1.25, (2, 16): 0.9}
    engine = {"max_num_seqs": 32}
    cells = [result_of(trial_of(k=k, load=at, engine=engine), s) for (k, at), s in grid.items()]
    result = sweep_of(*cells)
    schedule = schedule_of(result)
    assert schedule is not None
    trials = {t.cell.load.concurrency: t for t in schedule.trials()}
    runs = [result_of(trials[at], ratio) for at, ratio in verify]
    return sweep_of(*cells, *runs)


class TestSchedule:
    def test_it_follows_the_measured_leaders_and_ends_where_measuring_ended(self) -> None:
        schedule = schedule_of(scheduled())
        assert schedule is not None
        assert schedule.by_level == {1: 4, 4: 2, 16: 0}
        # Between 1 and 4 the smaller of both lengths; beyond 4 nothing was shown to pay.
        assert schedule.ranges == ((1, 1, 4), (2, 4, 2), (5, 32, 0))
        assert schedule.longest == 4

    def test_none_where_one_length_leads_everywhere(self) -> None:
        result = sweep_of(*(result_of(trial_of(load=at), 1.4) for at in (1, 4)))
        assert schedule_of(result) is None

    def test_it_is_run_as_a_candidate_at_both_ends(self) -> None:
        schedule = schedule_of(scheduled())
        assert schedule is not None
        trials = schedule.trials()
        assert [t.cell.load.concurrency for t in trials] == [1, 16]
        assert {t.kind for t in trials} == {"confirmation"}
        speculation = trials[0].pair.speculative.speculation
        assert speculation is not None
        option = speculation.options["num_speculative_tokens_per_batch_size"]
        assert option == [[1, 1, 4], [2, 4, 2], [5, 32, 0]]

    @pytest.mark.parametrize(
        ("runs", "expected"),
        [
            ((), None),
            (((1, 1.5),), None),
            (((1, 1.5), (16, 1.0)), True),
            (((1, 1.5), (16, 0.9)), False),
            (((1, 1.0), (16, 1.0)), False),
        ],
    )
    def test_it_is_deployed_only_when_it_kept_its_promise(
        self, runs: tuple[tuple[int, float], ...], expected: bool | None
    ) -> None:
        result = scheduled(verify=runs)
        schedule = schedule_of(result)
        assert schedule is not None
        assert verified(result, schedule) is expected
        deployment = recommend(result).deployment
        assert deployment is not None and deployment.speculation is not None
        option = "num_speculative_tokens_per_batch_size"
        assert (option in deployment.speculation.options) is (expected is True)

    @given(
        st.dictionaries(st.integers(1, 40), st.integers(0, 8), min_size=1, max_size=6),
        st.one_of(st.none(), st.integers(1, 64)),
    )
    def test_ranges_cover_from_1_and_say_what_was_measured(
        self, lengths: dict[int, int], cap: int | None
    ) -> None:
        ordered = dict(sorted(lengths.items()))
        if cap is not None:
            cap = max(cap, max(ordered))
        ranges = ranges_of(ordered, cap)
        assert ranges[0][0] == 1
        assert all(a[1] + 1 == b[0] and a[2] != b[2] for a, b in itertools.pairwise(ranges))
        at = {size: k for low, high, k in ranges for size in range(low, high + 1)}
        assert all(at[size] == k for size, k in ordered.items())
        assert all(k <= max(ordered.values()) for k in at.values())
        beyond = [k for size, k in at.items() if size > max(ordered)]
        assert not any(beyond)


class TestGuard:
    def test_the_acceptance_floor_is_where_the_gain_ends(self) -> None:
        """2 tokens a step at 1.25x per token: 1.6 break even. Of 50 decoded tokens that are 18.75
        accepted over 25 drafts of 4: length 1.75, rate 0.19."""
        trial = result_of(trial_of(), [1.25] * 4)
        length, rate = acceptance_floor(trial)
        assert length == pytest.approx(1.75)
        assert rate == pytest.approx(0.1875)

    def test_nothing_need_be_accepted_where_drafting_is_free(self) -> None:
        """As fast as 2 tokens a step allow: a step costs what a baseline step costs."""
        assert acceptance_floor(result_of(trial_of(), [2.5] * 4)) == (1.0, 0.0)

    def test_the_load_limit_is_within_what_was_measured(self) -> None:
        rising = sweep_of(*(result_of(trial_of(load=at), 1.4) for at in (1, 4)))
        assert guard_of(rising, rising.trials[0]).load_max == 4
        falling = sweep_of(*(result_of(trial_of(load=at), s) for at, s in ((1, 1.5), (8, 0.8))))
        limit = guard_of(falling, falling.trials[0]).load_max
        assert limit is not None and 1 < limit < 8

    def test_no_load_is_allowed_where_it_is_not_called_faster(self) -> None:
        open_above = sweep_of(
            *(result_of(trial_of(load=at), 1.5) for at in (1, 2)),
            result_of(trial_of(load=4), [1.5, 0.7, 1.4, 0.6]),
            result_of(trial_of(load=8), 1.5),
        )
        assert guard_of(open_above, open_above.trials[0]).load_max == 2

    def test_latency_limits_are_the_objectives_or_the_baselines_own(self) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), slo={"tpot_p95_s": 0.05})
        assert guard_of(result, result.trials[0]).latency_max_s == {"tpot_p95_s": 0.05}
        own = sweep_of(result_of(trial_of(), 1.4))
        guard = guard_of(own, own.trials[0])
        assert guard.latency_from == "baseline"
        assert guard.latency_max_s["tpot_p95_s"] == pytest.approx(0.02 * 1.03)


class TestFiles:
    def test_what_is_written_can_be_served_and_read_back(self, tmp_path: Path) -> None:
        result = sweep_of(result_of(trial_of(), 1.4), again())
        write_decision(result, tmp_path)
        served = read_serve_file(tmp_path / DEPLOY_FILE)
        (speculative, baseline) = served.applications
        assert speculative.engine.speculative_config() == {
            "method": "ngram",
            "num_speculative_tokens": 4,
        }
        assert baseline.engine.speculation is None
        plain = json.loads((tmp_path / DECISION_FILE).read_text())
        assert plain["advice"] == "on"
        assert plain["measured"]["confirmation"] == result.confirmations[0].trial.id
        assert read_decision(tmp_path / DECISION_FILE).side.cells[0].trial_id == (
            result.trials[0].trial.id
        )

    def test_a_decision_against_it_takes_the_file_away(self, tmp_path: Path) -> None:
        write_decision(sweep_of(result_of(trial_of(), 1.4)), tmp_path)
        assert (tmp_path / DEPLOY_FILE).exists()
        write_decision(sweep_of(result_of(trial_of(), 0.8)), tmp_path)
        assert not (tmp_path / DEPLOY_FILE).exists()
        assert json.loads((tmp_path / DECISION_FILE).read_text())["configuration"] is None

    def test_plain_flags(self) -> None:
        trial = trial_of(method="eagle", draft="a/head", engine={"enable_prefix_caching": False})
        words = shlex.split(vllm_serve(trial.pair.speculative))
        assert words[:3] == ["vllm", "serve", "target-8b"]
        assert "--no-enable-prefix-caching" in words
        config = json.loads(words[words.index("--speculative-config") + 1])
        assert config == {"method": "eagle", "num_speculative_tokens": 4, "model": "a/head"}

    def test_catalogue_names_are_put_in_words_that_vllm_knows(self) -> None:
        eagle = Speculation("eagle3", 3, draft="llama-3.1-8b-eagle3")
        words = shlex.split(vllm_serve(Deployment("llama-3.1-8b-instruct", {}, eagle)))
        assert words[2] == "meta-llama/Llama-3.1-8B-Instruct"
        assert json.loads(words[-1])["model"] == "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
        local = shlex.split(vllm_serve(Deployment("smollm2-135m-instruct", {})))
        assert Path(local[2]).is_absolute()

    def test_anything_else_is_no_decision_file(self, tmp_path: Path) -> None:
        for text in ("no json", "[]", '{"schema": 99}', '{"schema": 1}'):
            path = tmp_path / "x.json"
            path.write_text(text)
            with pytest.raises(SpecError, match=r"x\.json: .*decision|x\.json: is damaged"):
                read_decision(path)


class TestCheck:
    def written(self, folder: Path, **environment: object) -> Path:
        result = sweep_of(result_of(trial_of(), 1.4), again())
        here = {**environment_snapshot(folder), **environment}
        manifest = {**result.manifest, "environment": here, "models": {}}
        manifest["experiment"] = {"target": None}
        write_decision(replace(result, manifest=manifest), folder)
        return folder / DECISION_FILE

    def test_here_and_now_it_holds(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["check", str(self.written(tmp_path))]) == 0
        assert "facts hold" in capsys.readouterr().out

    def test_another_engine_version_voids_it(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = self.written(tmp_path, packages={"torch": "0.0.1"})
        assert main(["check", str(path)]) == 1
        out = capsys.readouterr().out
        assert "packages.torch" in out
        assert "void" in out

    def test_no_decision_file(self, tmp_path: Path) -> None:
        assert main(["check", str(tmp_path / "none.json")]) == 2

    def test_what_cannot_be_tested_does_not_hold(self) -> None:
        then = facts_of({}, {"target": {"name": "m", "revision": "r1"}})
        now = facts_of({}, {"target": {"name": "m", "revision": None}})
        checked = {fact.name: fact.holds for fact in check_facts(then, now)}
        assert checked["target.revision"] is None
        assert checked["packages.vllm"] is True  # absent then and now
        assert check_facts([Fact("gone", 1)], [])[0].holds is None
