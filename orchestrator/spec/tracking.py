"""Where results are compared."""

from __future__ import annotations

from orchestrator.spec.section import Section, Text


class Tracking(Section):
    """MLflow: `uri` of the store or server (default: sqlite beside the results), `experiment`."""

    uri: Text | None = None
    experiment: Text | None = None
