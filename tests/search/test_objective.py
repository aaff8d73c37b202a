"""A trial as a search sees it: valid pairs only, at the conservative end."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.pairs import Pair
from orchestrator.decide.objective import scores
from orchestrator.decide.pareto import pareto_front
from orchestrator.plan.trial import Protocol

SPEEDUP = "speedup_throughput"
PROTOCOL = Protocol(pairs_min=2, pairs_max=8)


def pair(ratio: float | None, *, valid: bool = True, **figures: float) -> Pair:
    logs = {} if ratio is None else {SPEEDUP: math.log(ratio)}
    made = SimpleNamespace(
        valid=valid, log_ratios=logs, speculative=SimpleNamespace(as_metrics=lambda: figures)
    )
    return cast(Pair, made)


def test_the_conservative_end_of_two_pairs_worked_out_by_hand() -> None:
    # Logs 0.1 and 0.3: mean 0.2, s = 0.1414, s / sqrt(2) = 0.1, t(0.8, 1) = 1.3764.
    pairs = [pair(math.exp(0.1)), pair(math.exp(0.3))]
    score = scores(pairs, PROTOCOL, [SPEEDUP], {}).objectives[SPEEDUP]
    assert score.estimate == pytest.approx(math.exp(0.2))
    assert score.conservative == pytest.approx(math.exp(0.2 - 0.13764), rel=1e-4)
    assert score.pairs == 2


def test_pairs_that_do_not_count_do_not_count() -> None:
    pairs = [pair(1.2), pair(9.0, valid=False), pair(None), pair(1.2)]
    score = scores(pairs, PROTOCOL, [SPEEDUP], {}).objectives[SPEEDUP]
    assert (score.estimate, score.pairs) == (pytest.approx(1.2), 2)


def test_an_objective_that_is_nowhere_defined_is_absent_not_zero() -> None:
    assert scores([pair(None)], PROTOCOL, [SPEEDUP, "goodput_rps"], {}).objectives == {}


def test_a_latency_is_conservative_above_its_mean() -> None:
    pairs = [pair(1.0, tpot_p95_s=0.01), pair(1.0, tpot_p95_s=0.02)]
    score = scores(pairs, PROTOCOL, ["tpot_p95_s"], {}).objectives["tpot_p95_s"]
    assert score.conservative > score.estimate


def test_goodput_of_nothing_is_zero_and_stays_so() -> None:
    pairs = [pair(1.0, goodput_rps=0.0), pair(1.0, goodput_rps=2.0)]
    score = scores(pairs, PROTOCOL, ["goodput_rps"], {}).objectives["goodput_rps"]
    assert (score.estimate, score.conservative) == (1.0, 0.0)


def test_a_service_objective_holds_up_to_its_bound() -> None:
    pairs = [pair(1.0, ttft_p99_s=0.5)] * 3
    at = scores(pairs, PROTOCOL, [SPEEDUP], {"ttft_p99_s": 0.5})
    assert at.constraints["ttft_p99_s"] == pytest.approx(0.0)
    assert scores(pairs, PROTOCOL, [SPEEDUP], {"ttft_p99_s": 0.6}).feasible
    assert not scores(pairs, PROTOCOL, [SPEEDUP], {"ttft_p99_s": 0.4}).feasible


def test_no_more_pairs_count_than_the_protocol_has() -> None:
    pairs = [pair(1.0)] * 8 + [pair(5.0)] * 8
    assert scores(pairs, PROTOCOL, [SPEEDUP], {}).objectives[SPEEDUP].estimate == 1.0
    more = replace(PROTOCOL, pairs_max=16)
    assert scores(pairs, more, [SPEEDUP], {}).objectives[SPEEDUP].estimate > 1.0


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=8))
def test_the_conservative_end_is_never_better_than_the_estimate(ratios: list[float]) -> None:
    found = scores([pair(ratio) for ratio in ratios], PROTOCOL, [SPEEDUP], {})
    score = found.objectives[SPEEDUP]
    assert score.conservative <= score.estimate * (1 + 1e-9)
    assert min(ratios) * (1 - 1e-9) <= score.estimate <= max(ratios) * (1 + 1e-9)


Rows = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.tuples(st.integers(0, 5), st.integers(0, 5))
)


def test_a_front_by_hand() -> None:
    values: Any = {"fast": (10, 5), "frugal": (4, 1), "worse": (9, 6), "same": (10, 5)}
    assert pareto_front(values, [False, True]) == ("fast", "frugal", "same")


@given(Rows)
def test_nothing_beats_the_front_and_everything_else_is_beaten_by_it(
    rows: dict[str, tuple[int, int]],
) -> None:
    front = pareto_front(rows, [False, True])
    assert bool(front) == bool(rows)

    def beats(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a[0] >= b[0] and a[1] <= b[1] and a != b

    assert not any(beats(rows[a], rows[b]) for a in rows for b in front)
    assert all(any(beats(rows[a], rows[b]) for a in front) for b in rows.keys() - set(front))
