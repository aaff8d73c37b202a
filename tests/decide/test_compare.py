"""Two sweeps side by side: what matters is matched, and only what is told is called."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orchestrator.decide.compare import Change, Comparison, compare
from orchestrator.decide.measured_cell import cell_key
from orchestrator.decide.side import side_as_plain, side_from, side_of
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.records import FailureClass
from orchestrator.report.comparison_html import comparison_html
from orchestrator.report.comparison_rows import headline
from orchestrator.report.comparison_text import comparison_markdown
from orchestrator.run.suites.record import SuiteResult
from tests.decide.results_by_hand import result_of, sweep_of, trial_of


def with_prompts(trial: TrialResult, name: str = "p") -> TrialResult:
    return replace(trial, pair_prompts=tuple(f"{name}{p.index}" for p in trial.pairs))


def sides(before: SweepResult, after: SweepResult, **options: Any) -> Comparison:
    return compare(side_of(before), side_of(after), **options)


def one(ratio: float, **blocks: Any) -> SweepResult:
    return sweep_of(with_prompts(result_of(trial_of(), ratio, **blocks)))


def of(found: Comparison, name: str) -> Change:
    (cell,) = found.cells
    return next(f.change for f in cell.figures if f.name == name)


def test_a_planted_regression_is_found_and_only_where_it_is() -> None:
    found = sides(one(1.5), one(1.2))
    assert of(found, "speedup_throughput") is Change.WORSE
    assert of(found, "speculative/output_tok_per_s") is Change.WORSE
    assert of(found, "baseline/output_tok_per_s") is Change.NONE
    assert found.regressions == (trial_of().cell.label(),)
    assert "1 regressions" in headline(found)


def test_the_same_twice_is_no_regression() -> None:
    found = sides(one(1.5), one(1.5))
    assert found.regressions == ()
    assert {f.change for cell in found.cells for f in cell.figures} == {Change.NONE}


def test_an_improvement_is_none_either() -> None:
    found = sides(one(1.2), one(1.5))
    assert (found.regressions, found.cells[0].improved) == ((), True)


def test_a_machine_that_became_slower_shows_in_both_arms_but_not_in_the_speedup() -> None:
    found = sides(one(1.5), one(1.5, jitter=1.3))
    assert of(found, "baseline/output_tok_per_s") is Change.WORSE
    assert of(found, "speculative/output_tok_per_s") is Change.WORSE
    assert of(found, "speedup_throughput") is Change.NONE


def test_blocks_with_the_same_prompts_are_paired() -> None:
    """Prompts differ fourfold in speed: only block by block can 10 % be seen."""
    rng = np.random.default_rng(1)
    spread = [float(x) for x in np.exp(rng.normal(0, 0.5, 8))]
    slower = [x / 1.1 for x in spread]
    before = sweep_of(with_prompts(result_of(trial_of(), spread)))
    after = sweep_of(with_prompts(result_of(trial_of(), slower)))
    paired = sides(before, after)
    assert of(paired, "speculative/tpot_s") in (Change.WORSE, Change.CANNOT_TELL)
    (figure,) = [f for f in paired.cells[0].figures if f.name == "speedup_tpot"]
    assert figure.paired == 8
    assert figure.ratio.value == pytest.approx(1 / 1.1)
    assert figure.change is Change.WORSE
    others = sweep_of(with_prompts(result_of(trial_of(), slower), "q"))
    (unpaired,) = [f for f in sides(before, others).cells[0].figures if f.name == "speedup_tpot"]
    assert (unpaired.paired, unpaired.change) == (0, Change.CANNOT_TELL)


def test_the_margin_is_the_users() -> None:
    assert sides(one(1.5), one(1.42)).regressions
    assert not sides(one(1.5), one(1.42), margin=0.2).regressions


def test_a_cell_that_fails_now_is_a_regression() -> None:
    failed = sweep_of(result_of(trial_of(), failure=FailureClass.OUT_OF_MEMORY))
    assert sides(one(1.5), failed).regressions
    assert not sides(failed, one(1.5)).regressions


def test_cells_are_matched_by_the_point_of_the_grid() -> None:
    same = trial_of(engine={"max_model_len": 2048}, seed=9)
    assert cell_key(trial_of()) == cell_key(same)
    assert cell_key(trial_of()) != cell_key(trial_of(k=2))
    assert cell_key(trial_of()) != cell_key(trial_of(temperature=0.7))
    found = sides(one(1.5), sweep_of(result_of(trial_of(k=2), 1.5)))
    assert not found.compared
    assert (len(found.only_before), len(found.only_after)) == (1, 1)


def test_what_differs_around_the_engines_comes_first() -> None:
    before, after = one(1.5), one(1.2)
    environment = {**after.manifest["environment"], "packages": {"vllm": "0.33.0"}}
    after = replace(after, manifest={**after.manifest, "environment": environment})
    found = sides(before, after)
    assert [(f.name, f.before, f.after) for f in found.facts] == [
        ("packages.vllm", "0.32.0", "0.33.0")
    ]
    text = comparison_markdown(found)
    assert text.index("packages.vllm") < text.index("speedup_throughput")


def test_noise_among_many_cells_is_not_called() -> None:
    """A single cell just beyond the margin is called by itself, and not among forty."""
    rng = np.random.default_rng(7)

    def sweep(shift: float) -> SweepResult:
        cells = []
        for k in range(1, 41):
            ratios = [float(1.3 * np.exp(x)) for x in rng.normal(shift if k == 1 else 0, 0.02, 6)]
            cells.append(with_prompts(result_of(trial_of(k=k), ratios)))
        return sweep_of(*cells)

    found = sides(sweep(0.0), sweep(0.0))
    assert found.regressions == ()


def test_a_suite_that_finds_something_now() -> None:
    key = trial_of().pair.key
    good, bad = (SuiteResult("quality", key, "ngram K=4", v, ok, ()) for v, ok in
                 (("lossless", True), ("2 findings", False)))  # fmt: skip
    before, after = replace(one(1.5), suites=(good,)), replace(one(1.5), suites=(bad,))
    assert sides(before, after).regressions == ("quality (ngram K=4)",)
    assert sides(after, before).regressions == ()


def test_a_stored_side_compares_like_the_sweep_itself() -> None:
    before, after = one(1.5), one(1.2)
    stored = side_from(json.loads(json.dumps(side_as_plain(side_of(before)))))
    assert compare(stored, side_of(after)) == sides(before, after)


def test_the_page_escapes_what_it_shows() -> None:
    after = one(1.2)
    after = replace(after, manifest={**after.manifest, "name": "<script>x</script>"})
    page = comparison_html(sides(one(1.5), after))
    assert "<script>" not in page
    assert page.count('class="regression"') == 2
