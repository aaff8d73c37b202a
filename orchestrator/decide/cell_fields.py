"""Which cell a trial is, as the first columns of every table that is read by machines."""

from __future__ import annotations

from typing import Any

from orchestrator.plan.trial import Trial


def cell_fields(trial: Trial) -> dict[str, Any]:
    """Flat, under the names people filter by; what a cell does not have is None."""
    cell = trial.cell
    return {
        "trial_id": trial.id,
        "kind": trial.kind,
        "method": cell.method,
        "draft": cell.draft,
        "speculation_length": cell.speculation_length,
        "batch_size": cell.batch_size,
        "temperature": cell.sampling.temperature,
        "workload": cell.workload.name,
        "load_mode": cell.load.mode,
    }
