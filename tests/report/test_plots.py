"""The pictures beside the report: every figure that has something to show, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import orchestrator.report.page
from orchestrator.report.plots import _DRAW, figures_of, write_plots
from tests.decide.results_by_hand import result_of, sweep_of, trial_of


def test_every_figure_is_a_picture(tmp_path: Path) -> None:
    result = sweep_of(
        *(result_of(trial_of(load=at, k=k), s) for k in (2, 4) for at, s in ((1, 1.5), (8, 0.8)))
    )
    written = write_plots(result, tmp_path)
    assert {path.stem for path in written} == {figure.id for figure in figures_of(result)}
    assert {"over-load", "batch-by-k", "acceptance-needed", "pareto"} <= {p.stem for p in written}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_whatever_the_page_draws_is_drawn_here_as_well() -> None:
    folder = Path(orchestrator.report.page.__file__).parent
    kinds = {
        kind
        for file in folder.glob("*.py")
        for kind in re.findall(r'kind="([a-z]+)"', file.read_text(encoding="utf-8"))
    }
    assert kinds == _DRAW.keys()
