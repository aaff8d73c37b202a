"""Cost and deployment as the report shows them, on constructed results."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.cost_text import cost_basis, cost_section, cost_views
from orchestrator.report.deploy_text import deploy_section, deploy_view
from orchestrator.report.language import LANGUAGES, Language, Words
from orchestrator.report.page import html_report
from tests.decide.results_by_hand import result_of, sweep_of, trial_of

WORK = {"integration_hours": 12.0, "upkeep_hours_per_month": 4.0, "hour_price": 50.0}
PRICE = {
    "device_hour": 3.6,
    "currency": "EUR",
    "devices": 2,
    "sensitivity": [0.5, 1.0, 2.0],
    "operations": WORK,
}


def falling(**experiment: object) -> SweepResult:
    loads = ((1, 1.5), (4, 1.2), (16, 0.8))
    again = result_of(trial_of(kind="confirmation", seed=1), [1.48, 1.5, 1.49, 1.5])
    return sweep_of(
        *(result_of(trial_of(load=at), s) for at, s in loads),
        again,
        **experiment,  # type: ignore[arg-type]
    )


def everything(result: SweepResult, words: Words) -> str:
    return "\n".join([*cost_section(result, words), *deploy_section(result, words)])


class TestCost:
    def test_no_money_without_a_price(self) -> None:
        for language in LANGUAGES:
            words = Words(language)
            assert not re.search(r"USD|EUR|\bprice of\b|金额为", everything(falling(), words))
            (view,) = cost_views(falling(), words)
            assert len(view.headings) == 2  # tokens and the ratio
        assert "No price was given" in " ".join(cost_basis(falling()))

    def test_price_sensitivity_load_and_volume(self) -> None:
        (view,) = cost_views(falling(cost=PRICE))
        assert view.headings[2:] == (
            "EUR per million tokens",
            "at x0.5 of the price",
            "at x2 of the price",
        )
        base, half, double = (view.rows[0].texts[i] for i in (2, 3, 4))
        first = [float(text.partition(" ")[0]) for text in (half, base, double)]
        assert first == pytest.approx([first[1] / 2, first[1], first[1] * 2], rel=0.01)
        said = " ".join(view.sentences)
        assert "wins below, loses above" in said
        assert "integration 12 h, spread over 12 months" in said
        assert "incidents not stated a month" in said
        assert "That is 5.0 h or 250.00 EUR a month" in said
        assert "million tokens a month on" in said
        assert "at x0.5 of the price from" in said

    def test_every_row_leads_to_its_trial(self) -> None:
        result = falling(cost=PRICE)
        (view,) = cost_views(result)
        assert [row.trial_id for row in view.rows] == [t.trial.id for t in result.trials]
        page = html_report(result, Words("en"))
        cost = page[page.index('<section id="cost">') : page.index('<section id="effect">')]
        assert all(f'href="#t-{row.trial_id}"' in cost for row in view.rows)


class TestDeploy:
    def test_limits_flags_and_what_voids_it(self) -> None:
        found = deploy_view(falling(slo={"tpot_p95_s": 0.05}))
        assert found.command.startswith("vllm serve target-8b ")
        assert ("p95 of time per output token at most", "50 ms (your objective)") in found.guard
        assert dict(found.guard)["load at most"].endswith("in flight")
        assert found.schedule.startswith("Speculation length by batch size")
        assert "was not verified" in found.schedule
        assert len(found.evidence) == 2  # the cell and its confirmation

    def test_nothing_to_deploy_is_said(self) -> None:
        found = deploy_view(sweep_of(result_of(trial_of(), 0.8)))
        assert found.command == ""
        assert "leave the baseline" in found.text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "sweep",
    [
        lambda: falling(cost=PRICE),
        falling,
        lambda: sweep_of(result_of(trial_of(), 0.8), cost={**PRICE, "operations": {}}),
        lambda: sweep_of(result_of(trial_of(), [1.4], ended=False), cost=PRICE),
    ],
)
def test_everything_can_be_said(language: Language, sweep: Callable[[], SweepResult]) -> None:
    assert everything(sweep(), Words(language))
