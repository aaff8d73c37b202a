"""Which of several cells are not beaten in everything by another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def pareto_front(
    values: Mapping[str, Sequence[float]], lower_is_better: Sequence[bool]
) -> tuple[str, ...]:
    """The names that no other dominates, in the order given.

    A dominates B when it is at least as good in every value and better in one. Equal cells do not
    dominate each other: both stay.
    Raises: ValueError for values of different lengths.
    """
    signed = {
        name: tuple(-v if lower else v for v, lower in zip(row, lower_is_better, strict=True))
        for name, row in values.items()
    }
    return tuple(
        name
        for name, row in signed.items()
        if not any(_dominates(other, row) for other in signed.values())
    )


def _dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(x >= y for x, y in zip(a, b, strict=True)) and tuple(a) != tuple(b)
