"""MLflow: one parent run a sweep, one child a trial. One writer: the driver's process for it.

The names are loaded when they are asked for: importing MLflow takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.adapters.mlflow.process import MlflowProcess
    from orchestrator.adapters.mlflow.tracker import MlflowTracker, local_tracking_uri

__all__ = ["MlflowProcess", "MlflowTracker", "local_tracking_uri"]


def __getattr__(name: str) -> Any:
    if name == "MlflowProcess":
        from orchestrator.adapters.mlflow.process import MlflowProcess

        return MlflowProcess
    if name in __all__:
        from orchestrator.adapters.mlflow import tracker

        return getattr(tracker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
