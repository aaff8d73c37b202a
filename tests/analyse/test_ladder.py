"""Knee, cliff, plateau and break-even load: worked ladders, then what must hold for any."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.ladder import (
    ArmAtRung,
    Estimate,
    Rung,
    brackets,
    break_even_load,
    cliffs,
    highest_sustained,
    in_order,
    knee,
    plateau,
)
from orchestrator.analyse.rung import difference, ratio
from orchestrator.analyse.saturation import Regime, Saturation
from orchestrator.plan.trial import LoadPoint

SATURATED = Saturation(Regime.SATURATED, "20% of the requests that come stay")
Interval = tuple[float, float, float]
"""(value, low, high)"""


def rps(
    rate: float,
    attainment: float | None = None,
    achieved: float | None = 1.0,
    saturation: Saturation | None = None,
) -> Rung:
    """An open rung on which both arms do the same."""
    share = None if attainment is None else Estimate.exactly(attainment)
    at = ArmAtRung(attainment=share, achieved_over_offered=achieved, saturation=saturation)
    return Rung(LoadPoint("open", rate_rps=rate), {"baseline": at, "speculative": at})


def streams(count: int, tok_per_s: float, spread: float = 0.0, **more: Estimate) -> Rung:
    tokens = Estimate(tok_per_s, tok_per_s - spread, tok_per_s + spread)
    at = ArmAtRung(output_tok_per_s=tokens, **more)  # type: ignore[arg-type]
    return Rung(LoadPoint("closed", concurrency=count), {"baseline": at})


def speedups(**at: Interval) -> list[Rung]:
    """`x4=(1.1, 1.05, 1.2)`: the speedup at 4 in flight."""
    return [
        Rung(
            LoadPoint("closed", concurrency=int(name[1:])),
            speedups={"speedup_tpot": Estimate(*interval)},
        )
        for name, interval in at.items()
    ]


class TestKnee:
    def test_is_the_highest_rung_that_keeps_the_target(self) -> None:
        found = knee([rps(1, 1.0), rps(2, 0.97), rps(4, 0.80), rps(8, 0.2)], "baseline")
        assert (found.load, found.next_load) == (2, 4)
        assert found.why == "4 rps: attainment 0.8 [0.8, 0.8] is below 0.95"
        assert found.bracket is not None
        assert (found.bracket.low, found.bracket.high) == (2, 4)

    def test_needs_what_is_offered_to_be_achieved(self) -> None:
        """Every request within its bounds, but only 94 % as many as came: not qualified."""
        found = knee([rps(1, 1.0, 0.95), rps(2, 1.0, 0.94)], "baseline")
        assert found.load == 1
        assert "achieved 0.94 of offered" in found.why

    def test_is_not_at_a_saturated_rung(self) -> None:
        found = knee([rps(1, 1.0), rps(2, 1.0, 0.96, SATURATED)], "baseline")
        assert found.load == 1
        assert found.why == "2 rps: saturated: 20% of the requests that come stay"

    def test_beyond_the_range_is_said_not_guessed(self) -> None:
        found = knee([rps(1, 1.0), rps(2, 0.99)], "baseline")
        assert (found.load, found.next_load, found.bracket) == (2, None, None)
        assert "lies beyond the range" in found.why

    def test_none_qualifies(self) -> None:
        found = knee([rps(1, 0.5), rps(2, 0.4)], "baseline")
        assert found.load is None
        assert found.why.startswith("no rung qualifies; the lowest, 1 rps: attainment 0.5")

    def test_without_an_slo_there_is_none(self) -> None:
        found = knee([rps(1), rps(2)], "baseline")
        assert found.load is None and "no SLO" in found.why

    def test_of_rungs_that_were_not_run(self) -> None:
        unrun = Rung(LoadPoint("open", rate_rps=4), skipped="not run: saturated below")
        assert knee([unrun], "baseline").why == "no rung was measured"
        assert "beyond the range" in knee([rps(2, 1.0), unrun], "baseline").why

    def test_a_gap_below_the_knee_is_told(self) -> None:
        found = knee([rps(1, 1.0), rps(2, 0.9), rps(4, 0.96), rps(8, 0.1)], "baseline")
        assert found.load == 4
        assert found.notes[0].startswith("not monotone: 2 rps (attainment 0.9")

    def test_a_close_call_is_told(self) -> None:
        close = Rung(
            LoadPoint("open", rate_rps=2),
            {"baseline": ArmAtRung(Estimate(0.94, 0.90, 0.97), 1.0)},
        )
        found = knee([rps(1, 1.0), close], "baseline")
        assert found.load == 1
        assert found.notes == ("2 rps: attainment 0.94 [0.9, 0.97] is not told from 0.95",)

    def test_in_a_closed_loop_attainment_alone_decides(self) -> None:
        at = {n: ArmAtRung(attainment=Estimate.exactly(a)) for n, a in {4: 0.99, 8: 0.5}.items()}
        closed = [Rung(LoadPoint("closed", concurrency=n), {"baseline": x}) for n, x in at.items()]
        assert knee(closed, "baseline").load == 4

    def test_highest_sustained_needs_no_slo(self) -> None:
        ladder = [rps(1), rps(2, achieved=0.97), rps(4, achieved=0.8), rps(8, achieved=None)]
        assert highest_sustained(ladder, "baseline").load == 2
        assert highest_sustained([streams(1, 10)], "baseline").load is None

    def test_the_target_is_a_share(self) -> None:
        with pytest.raises(ValueError, match="attainment target"):
            knee([rps(1, 1.0)], "baseline", 95)

    @given(
        st.dictionaries(
            st.integers(1, 100),
            st.tuples(st.floats(0, 1), st.floats(0, 1.1), st.booleans()),
            min_size=1,
        )
    )
    def test_qualifies_and_nothing_above_it_does(
        self, ladder: dict[int, tuple[float, float, bool]]
    ) -> None:
        rungs = [rps(x, a, b, SATURATED if lost else None) for x, (a, b, lost) in ladder.items()]
        good = [x for x, (a, b, lost) in ladder.items() if a >= 0.95 and b >= 0.95 and not lost]
        assert knee(rungs, "baseline").load == max(good, default=None)


class TestBreakEven:
    def test_is_interpolated_on_log_load(self) -> None:
        """2x at 1, half at 4: the line crosses 1 at 2. Its ends cross where 1.6 and 2.5 do:
        log 1.6 + log 2.5 = log 4."""
        found = break_even_load(speedups(x1=(2, 1.6, 2.5), x4=(0.5, 0.4, 0.625)), "speedup_tpot")
        assert found.load == pytest.approx(2.0)
        assert found.low == pytest.approx(1.6)
        assert found.high == pytest.approx(2.5)
        assert found.crossings[0].direction == "falling"
        assert found.why == "speculation pays below 2 [1.6, 2.5]"

    def test_may_rise(self) -> None:
        found = break_even_load(speedups(x1=(0.5, 0.4, 0.625), x4=(2, 1.6, 2.5)), "speedup_tpot")
        assert found.load == pytest.approx(2.0)
        assert found.low == pytest.approx(1.6)
        assert found.high == pytest.approx(2.5)
        assert found.why == "speculation pays above 2 [1.6, 2.5]"

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            ((1.2, 1.1, 1.3), "speculation wins at every measured load"),
            ((0.8, 0.7, 0.9), "speculation loses at every measured load"),
            ((1.0, 0.9, 1.1), "no rung is told from 1 between 1 and 4: all intervals contain 1"),
        ],
    )
    def test_no_crossing(self, value: Interval, why: str) -> None:
        found = break_even_load(speedups(x1=value, x4=value), "speedup_tpot")
        assert (found.load, found.low, found.high, found.why) == (None, None, None, why)

    def test_nothing_was_measured(self) -> None:
        assert break_even_load([rps(1)], "speedup_tpot").why == "no rung has a speedup_tpot"

    def test_not_resolved_at_the_end(self) -> None:
        found = break_even_load(
            speedups(x1=(1.3, 1.2, 1.4), x4=(1.2, 1.1, 1.3), x8=(0.98, 0.9, 1.06)), "speedup_tpot"
        )
        assert found.load is None
        assert found.why == "crossing not resolved between 4 and 8: intervals contain 1"
        assert [(b.low, b.high) for b in found.unresolved_brackets] == [(4, 8)]

    def test_an_unresolved_rung_between_widens_the_interval(self) -> None:
        """The rung at 2 contains 1: the crossing lies between 1 and 4, about 2, and no closer."""
        found = break_even_load(
            speedups(x1=(1.5, 1.4, 1.6), x2=(1.0, 0.9, 1.1), x4=(0.7, 0.6, 0.8)), "speedup_tpot"
        )
        assert found.load == pytest.approx(2.0)
        assert found.crossings[0].between == (1, 4)
        # log 1.4 / log (1.4/0.9) of the octave 1..2; log 1.1 / log (1.1/0.8) of the octave 2..4
        assert found.low == pytest.approx(2 ** (math.log(1.4) / math.log(1.4 / 0.9)))
        assert found.high == pytest.approx(2 * 2 ** (math.log(1.1) / math.log(1.1 / 0.8)))

    def test_several_crossings_are_listed(self) -> None:
        """Loses alone, wins at 4, loses at 16."""
        found = break_even_load(
            speedups(x1=(0.5, 0.4, 0.6), x4=(2, 1.9, 2.1), x16=(0.5, 0.4, 0.6)), "speedup_tpot"
        )
        assert found.load is None
        assert [c.direction for c in found.crossings] == ["rising", "falling"]
        assert [c.load for c in found.crossings] == [pytest.approx(2), pytest.approx(8)]
        assert found.why == "the speedup crosses 1 more than once: 2 (rising), 8 (falling)"

    def test_a_saturated_neighbour_is_told(self) -> None:
        low, high = speedups(x1=(2, 1.6, 2.5), x4=(0.5, 0.4, 0.625))
        lost = Rung(high.load, {"speculative": ArmAtRung(saturation=SATURATED)}, high.speedups)
        (note,) = break_even_load([low, lost], "speedup_tpot").notes
        assert note.startswith("4 in flight is saturated (speculative)")

    @given(
        st.dictionaries(
            st.integers(1, 1000),
            st.tuples(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 0.5)),
            min_size=1,
            max_size=8,
        )
    )
    def test_never_outside_the_rungs_that_show_it(
        self, ladder: dict[int, tuple[float, float, float]]
    ) -> None:
        rungs = speedups(
            **{
                f"x{load}": (math.exp(v), math.exp(v - a), math.exp(v + b))
                for load, (v, a, b) in ladder.items()
            }
        )
        found = break_even_load(rungs, "speedup_tpot")
        for crossing in found.crossings:
            first, last = crossing.between
            assert first in ladder and last in ladder
            slack = 1e-9
            assert first * (1 - slack) <= crossing.low <= crossing.load * (1 + slack)
            assert crossing.load <= crossing.high * (1 + slack) <= last * (1 + 2 * slack)
        # Directions alternate: one cannot fall twice without having risen.
        ways = [c.direction for c in found.crossings]
        assert all(a != b for a, b in itertools.pairwise(ways))


class TestCliffs:
    def test_half_the_throughput_is_lost(self) -> None:
        (found,) = cliffs([streams(1, 10), streams(2, 20, 1), streams(4, 10, 1)])
        assert (found.what, found.arm, found.below, found.above) == (
            "output_tok_per_s",
            "baseline",
            2,
            4,
        )
        assert found.change.value == pytest.approx(0.5)

    def test_noise_is_no_cliff(self) -> None:
        """The same loss with intervals of +-6 tokens/s: it may be as little as 14 %."""
        assert cliffs([streams(2, 20, 6), streams(4, 10, 6)]) == ()

    def test_latency_that_grows_with_the_load_is_queueing(self) -> None:
        """Twice in flight, twice as long: no cliff. Four times as long: half is left."""

        def ladder(e2e_s: float) -> list[Rung]:
            one = Estimate.exactly(1.0)
            return [
                streams(4, 10, e2e_s=one),
                streams(8, 10, e2e_s=Estimate.exactly(e2e_s)),
            ]

        assert cliffs(ladder(2.0)) == ()
        (found,) = cliffs(ladder(4.0))
        assert found.what == "e2e_s" and found.change.value == pytest.approx(0.5)

    def test_attainment_falls_by_a_difference(self) -> None:
        found = cliffs([rps(1, 0.9), rps(2, 0.4), rps(4, 0.3)])
        assert [(c.what, c.arm, c.above) for c in found] == [
            ("slo_attainment", "baseline", 2),
            ("slo_attainment", "speculative", 2),
        ]
        assert found[0].change.value == pytest.approx(-0.5)

    def test_a_speedup_falls(self) -> None:
        (found,) = cliffs(speedups(x1=(2, 1.9, 2.1), x2=(1.8, 1.7, 1.9), x4=(0.9, 0.8, 1.0)))
        assert (found.what, found.arm, found.above) == ("speedup_tpot", None, 4)

    def test_with_one_block_a_figure_has_no_interval_and_makes_no_cliff(self) -> None:
        blind = ArmAtRung(output_tok_per_s=Estimate(1.0, 0.0, math.inf))
        rung = Rung(LoadPoint("closed", concurrency=4), {"baseline": blind})
        assert cliffs([streams(2, 20), rung]) == ()


class TestPlateau:
    def test_begins_where_a_stream_more_brings_nothing(self) -> None:
        """10 tokens/s a stream; from 4 to 8 in flight 2 more in all: 0.5 / 10 = 5 %."""
        ladder = [streams(1, 10), streams(2, 20), streams(4, 36), streams(8, 38)]
        found = plateau(ladder, "baseline")
        assert found.load == 4
        assert found.gain is not None and found.gain.value == pytest.approx(0.05)

    def test_still_growing(self) -> None:
        found = plateau([streams(1, 10), streams(2, 19), streams(4, 36)], "baseline")
        assert found.load is None and "still grows" in found.why

    def test_within_noise_is_not_told(self) -> None:
        """2 +- 7 tokens/s over 4 streams: 5 % or 22 %."""
        found = plateau([streams(4, 36, 5), streams(8, 38, 5)], "baseline")
        assert found.load is None and "is not told from 0.1" in found.why

    def test_a_pause_is_no_plateau(self) -> None:
        found = plateau([streams(1, 10), streams(2, 10), streams(4, 30)], "baseline")
        assert found.load is None

    def test_needs_a_closed_loop_with_two_rungs(self) -> None:
        assert "see the knee" in plateau([rps(1), rps(2)], "baseline").why
        assert "fewer than two" in plateau([streams(1, 10)], "baseline").why


class TestRungs:
    def test_are_put_in_order(self) -> None:
        assert [r.offered for r in in_order([rps(4), rps(1), rps(2)])] == [1, 2, 4]

    def test_of_a_ladder_differ(self) -> None:
        with pytest.raises(ValueError, match="the same load, 2 rps"):
            in_order([rps(2), rps(2)])
        with pytest.raises(ValueError, match="one mode"):
            in_order([rps(2), streams(2, 10)])

    def test_achieved_rate(self) -> None:
        assert rps(4, achieved=0.9).achieved_rps("baseline") == pytest.approx(3.6)
        assert streams(4, 10).achieved_rps("baseline") is None

    def test_ratio_and_difference_of_two_estimates(self) -> None:
        """Without noise below, the interval is that of the one above, scaled."""
        above, below = Estimate(6.0, 5.0, 8.0), Estimate.exactly(2.0)
        assert ratio(above, below).low == pytest.approx(2.5)
        assert ratio(above, below).high == pytest.approx(4.0)
        assert difference(above, below) == Estimate(4.0, 3.0, 6.0)
        with pytest.raises(ValueError, match="> 0"):
            ratio(Estimate(1.0, 0.0, 2.0), below)

    def test_an_estimate_lies_in_its_interval(self) -> None:
        with pytest.raises(ValueError, match="low=2, value=1, high=3"):
            Estimate(1, 2, 3)

    def test_brackets_come_in_the_order_of_promise(self) -> None:
        ladder = [
            Rung(
                LoadPoint("open", rate_rps=rate),
                {"baseline": ArmAtRung(Estimate.exactly(a), 1.0)},
                {"speedup_tpot": Estimate(*t), "speedup_e2e": Estimate(*e)},
            )
            for rate, a, t, e in [
                (1, 1.0, (1.5, 1.4, 1.6), (1.5, 1.4, 1.6)),
                (2, 1.0, (1.2, 1.1, 1.3), (1.0, 0.9, 1.1)),
                (4, 0.5, (0.9, 0.8, 0.95), (1.0, 0.9, 1.1)),
            ]
        ]
        found = brackets(ladder, ["speedup_tpot", "speedup_e2e"])
        assert [(b.low, b.high, b.why) for b in found] == [
            (2, 4, "break-even of speedup_tpot"),
            (2, 4, "knee of the baseline arm"),
            (1, 4, "break-even of speedup_e2e"),
        ]
