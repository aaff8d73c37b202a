"""MLflow: one parent run a sweep, one child a trial. One writer: the driver."""

from orchestrator.adapters.mlflow.tracker import MlflowTracker, local_tracking_uri

__all__ = ["MlflowTracker", "local_tracking_uri"]
