"""Imported by a template before it forks anything: this module's effect is its imports."""

from orchestrator.serving.lean_imports import import_engine

import_engine()
