"""A ladder: trials that differ only in the load."""

from __future__ import annotations

from orchestrator.plan.trial import LoadPoint, Trial


def load_level(load: LoadPoint) -> float:
    """Where on its ladder a load stands: more is harder.

    Unit: requests in flight (closed); requests/s (open); for a trace without a rate 1/time_scale,
    which is 2 when it is played twice as fast.
    Raises: ValueError when the load does not say how much it offers.
    """
    if load.mode == "closed":
        level: float | None = load.concurrency
    elif load.rate_rps is not None:
        level = load.rate_rps
    else:
        level = 1 / load.time_scale if load.arrivals == "trace" and load.time_scale > 0 else None
    if level is None or not level > 0:
        raise ValueError(
            f"a rung of a ladder needs a load > 0: concurrency (closed), rate_rps (open) or "
            f"time_scale (trace), but got {load}"
        )
    return float(level)


def ladder_key(trial: Trial) -> str:
    """See `Trial.ladder`."""
    return trial.ladder
