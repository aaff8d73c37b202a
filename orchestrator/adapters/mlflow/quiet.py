"""Import MLflow without its chatter, and with retries that end soon."""

from __future__ import annotations

import logging
import os


def prepare_environment() -> None:
    """Must run before mlflow is imported: it reads these once.

    By default a dead server is retried for four minutes (7 retries); a sweep would stand still.
    """
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_ENABLE_ASYNC_LOGGING", "false")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    for name in ("alembic", "mlflow.store.db.utils", "mlflow.utils", "mlflow.tracking"):
        logging.getLogger(name).setLevel(logging.WARNING)
