"""Optuna proposes cells (tree-structured Parzen estimator) and says which have fallen behind."""

from orchestrator.adapters.optuna.halting import OptunaHalting
from orchestrator.adapters.optuna.proposer import STARTUP, OptunaProposer

__all__ = ["STARTUP", "OptunaHalting", "OptunaProposer"]
