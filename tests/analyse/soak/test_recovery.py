"""Around an event: a request a second, whose first token comes after 0.1 s and its end at 0.5 s."""

from __future__ import annotations

import pytest

from orchestrator.analyse.soak.recovery import Recovery, Seen, much_longer, recovery_of


def usual(at_s: float, wait_s: float = 0.1) -> Seen:
    return Seen(at_s, at_s + wait_s, at_s + wait_s + 0.4, 5, None)


def failed(at_s: float) -> Seen:
    return Seen(at_s, None, at_s + 0.1, None, "connect")


BEFORE = [usual(at) for at in range(10)]


def test_as_before_from_the_first_moment_on() -> None:
    found = recovery_of([*BEFORE, *(usual(at) for at in range(10, 40))], 10, 20, 40)
    assert (found.recovered_s, found.failed, found.enough) == (0.0, 0, True)
    assert found.overshoot == pytest.approx(1.0)


def test_failures_end_when_four_in_a_row_are_answered() -> None:
    rows = [*BEFORE, *(failed(at) for at in range(10, 25)), *(usual(at) for at in range(25, 40))]
    found = recovery_of(rows, 10, 20, 40)
    assert found.recovered_s == 5.0
    assert found.failed == 15 and found.errors == (("connect", 15),)
    assert found.requests == 16, "up to the first that was as before"


def test_slow_answers_are_not_as_before() -> None:
    rows = [*BEFORE, *(usual(at, 2.0) for at in range(10, 30)), *(usual(at) for at in (30, 31, 32))]
    found = recovery_of([*rows, usual(33)], 10, 20, 40)
    assert found.recovered_s == 9.0, "the median of 29..32 is low: three of four are fast"
    assert found.overshoot == pytest.approx(20.0)


def test_never_within_what_was_watched() -> None:
    found = recovery_of([*BEFORE, *(failed(at) for at in range(10, 40))], 10, 20, 40)
    assert found.recovered_s is None and found.watched_s == 20 and found.enough


def test_nothing_before_tells_nothing() -> None:
    found = recovery_of([usual(at) for at in range(10, 40)], 10, 20, 40)
    assert not found.enough and found.recovered_s is None


def made(recovered_s: float | None, *, enough: bool = True) -> Recovery:
    return Recovery(10, 0, (), recovered_s, 60.0, 1.0, 0.1, 0.5, enough)


@pytest.mark.parametrize(
    ("ours", "base", "longer"),
    [(30.0, 10.0, True), (14.0, 10.0, False), (None, 10.0, True), (None, None, False)],
)
def test_much_longer_is_twice_and_five_seconds(
    ours: float | None, base: float | None, longer: bool
) -> None:
    assert much_longer(made(ours), made(base)) is longer
    assert not much_longer(made(ours, enough=False), made(base))
