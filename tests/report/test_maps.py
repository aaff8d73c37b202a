"""Heat maps, what lies between the cells, and what-ifs, from a simulated sweep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.analyse.break_even import BreakEvenStep
from orchestrator.decide.conclusions import conclusions
from orchestrator.decide.step_maps import step_maps
from orchestrator.decide.sweep_result import SweepResult, read_sweep
from orchestrator.decide.trial_result import TrialResult
from orchestrator.report.language import Words
from orchestrator.report.map_text import map_section
from orchestrator.report.page.map_panels import map_figures
from orchestrator.report.what_if_text import what_if_section
from orchestrator.store import SweepFolder
from tests.sweep.world import run_story

EXPERIMENT = """\
name: supposed
target: simulated-8b
engine: {simulated: {profile: fast, acceptance: 0.6}}
sweep:
  speculation:
    - {method: ngram, speculation_length: [1, 2, 4]}
    - {method: what_if, acceptance: [0.2, 0.9], speculation_length: 4}
  batch_size: [1, 2, 8]
  temperature: 0.0
workloads: [{name: chat, prompts: bundled:chat, output_tokens: 24, allow_reuse: true}]
measure: {pairs: {min: 2, max: 3}}
seed: 3
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    folder = tmp_path_factory.mktemp("maps")
    file = folder / "supposed.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    run_story(file, folder / "r")
    return read_sweep(SweepFolder(folder / "r" / "supposed"))


def _timed(result: SweepResult) -> SweepResult:
    """The same, as if the engines had said what their steps cost."""

    def timed(trial: TrialResult) -> TrialResult:
        k, batch = trial.trial.cell.speculation_length, trial.trial.cell.batch_size
        tokens, needed = 1 + 0.5 * k, 1 + 0.05 * k * batch
        step = BreakEvenStep(None, None, needed, tokens, tokens / needed)
        return replace(trial, step=step)

    return replace(result, trials=tuple(map(timed, result.trials)))


def test_what_ifs_are_beside_the_comparisons_and_never_among_them(result: SweepResult) -> None:
    assert len(result.what_ifs) == 2 * 3
    assert {trial.trial.cell.method for trial in result.trials} == {"ngram"}
    assert not set(result.decisions) & {trial.trial.id for trial in result.what_ifs}
    said = " ".join(trial for conclusion in conclusions(result) for trial in conclusion.evidence)
    assert not [trial for trial in result.what_ifs if trial.trial.id in said]


def test_a_better_draft_is_faster_and_the_table_says_what_was_supposed(
    result: SweepResult,
) -> None:
    lines = [line for line in what_if_section(result) if line.startswith("| chat")]
    assert len(lines) == 6
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in lines]
    assert [(row[3], row[4]) for row in rows] == [
        ("1", "0.2"), ("1", "0.9"), ("2", "0.2"), ("2", "0.9"), ("8", "0.2"), ("8", "0.9"),
    ]  # fmt: skip
    for poor, good in zip(rows[::2], rows[1::2], strict=True):
        assert float(poor[-1].partition("x")[0]) < float(good[-1].partition("x")[0])
        assert float(good[5]) > 0.6 > float(poor[5])


def test_the_map_holds_every_cell_and_what_lies_between(result: SweepResult) -> None:
    timed = _timed(result)
    (found,) = step_maps(timed.trials)
    assert len(found.cells) == 9
    text = "\n".join(map_section(timed))
    assert "**ngram · chat · T=0**" in text
    assert "| K=4 | AL\\* | 1.20 | 1.40 | 2.60 |" in text
    assert "| K=4 | margin | +150% | +114% | +15% |" in text
    assert "- K=3, batch 4: " in text
    assert "each of 5 measured cells, predicted from the others" in text
    assert list(map_section(replace(result, trials=()))) == []


def test_the_page_has_the_maps_as_plots_and_tables(result: SweepResult) -> None:
    figures = {figure.id: figure for figure in map_figures(_timed(result), Words("zh"))}
    assert set(figures) == {"step-maps", "what-if"}
    assert len(figures["step-maps"].panels) == 3
    margins = figures["step-maps"].panels[2]
    assert margins.options["xs"] == [1, 2, 8] and margins.options["ys"] == [1, 2, 4]
    assert margins.options["centre"] == 0.0
    plots = figures["what-if"].panels
    assert [panel.options["xs"] for panel in plots] == [[0.2, 0.9]] * 3
    ids = {trial.trial.id for trial in result.what_ifs}
    assert all(point["id"] in ids for panel in plots for point in panel.points)
