"""Where the report of a sweep goes."""

from __future__ import annotations

from pathlib import Path

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.markdown import markdown_report
from orchestrator.store.atomic import write_atomically


def write_report(result: SweepResult, folder: Path) -> Path:
    """Write `report.md` into the sweep's folder and return its path. Raises: StoreError."""
    path = folder / "report.md"
    text = markdown_report(result)
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return path
