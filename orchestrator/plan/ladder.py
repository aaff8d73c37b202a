"""A ladder: trials that differ only in the load."""

from __future__ import annotations

from typing import Any

from orchestrator.plan.identity import content_hash
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
    """The same for all rungs of one ladder: the trial's identity without how much is offered.

    Left out: the seed, the batch size, and of the load its concurrency, rate and time scale. The
    kind of load stays (mode, arrivals, burstiness, trace): Poisson and bursty arrivals are two
    ladders; so does the engine's cap, which is the deployments'.
    """
    identity: dict[str, Any] = trial.identity()
    del identity["seed"]
    cell = dict(identity["cell"])
    del cell["batch_size"]
    load = dict(cell["load"])
    for how_much in ("concurrency", "rate_rps", "time_scale"):
        del load[how_much]
    # A trace that is scaled to a rate and one that is scaled by hand are different ladders.
    load["by"] = "rate" if trial.cell.load.rate_rps is not None else "scale"
    return content_hash({**identity, "cell": {**cell, "load": load}})
