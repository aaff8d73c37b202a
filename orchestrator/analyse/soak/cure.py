"""Does a restart, or an emptied cache, bring back what the hours took?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtrit

from orchestrator.analyse.autocorrelation import inflated_standard_error

WINDOWS_MIN = 4
HALF = 0.5


class Cure(StrEnum):
    CURES = "cures"
    """Something was lost, and at least half of it came back."""
    NO_CURE = "does not cure"
    NOTHING_LOST = "nothing was lost"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class CureFound:
    """Changes on the log scale (`relative`) or as they are; positive is better."""

    cure: Cure
    lost: float | None
    """First windows less the last ones before the control."""
    regained: float | None
    """Windows after the control less the last ones before it."""


def cure_of(
    fresh: Sequence[float],
    worn: Sequence[float],
    after: Sequence[float],
    *,
    higher_is_better: bool,
    confidence: float,
    margin: float,
    relative: bool = True,
) -> CureFound:
    """Compares three stretches of windows: the first, the last, and those after the control.

    Formula: differences of means (of logs), each with a t interval whose errors are widened for
        autocorrelation (`inflated_standard_error`).
    Undefined (cannot tell): fewer than 4 windows in one of them, or intervals that leave it open.
    """
    stretches = [_plain(values, relative) for values in (fresh, worn, after)]
    if min(map(len, stretches)) < WINDOWS_MIN:
        return CureFound(Cure.CANNOT_TELL, None, None)
    sign = 1.0 if higher_is_better else -1.0
    means = [sign * float(np.mean(values)) for values in stretches]
    errors = [float(inflated_standard_error(values)) for values in stretches]
    freedom = min(map(len, stretches)) - 1
    quantile = float(stdtrit(freedom, (1 + confidence) / 2))
    lost, regained = means[0] - means[1], means[2] - means[1]
    reach_lost = quantile * math.hypot(errors[0], errors[1])
    reach_regained = quantile * math.hypot(errors[2], errors[1])
    if lost + reach_lost < margin:
        return CureFound(Cure.NOTHING_LOST, lost, regained)
    if lost - reach_lost <= 0 or lost < margin:
        return CureFound(Cure.CANNOT_TELL, lost, regained)
    if regained - reach_regained > 0 and regained >= HALF * lost:
        return CureFound(Cure.CURES, lost, regained)
    if regained + reach_regained < HALF * lost:
        return CureFound(Cure.NO_CURE, lost, regained)
    return CureFound(Cure.CANNOT_TELL, lost, regained)


def _plain(values: Sequence[float], relative: bool) -> list[float]:
    if relative:
        return [math.log(value) for value in values if value > 0]
    return [value for value in values if math.isfinite(value)]
