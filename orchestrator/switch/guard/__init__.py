"""The guard over live traffic: `LiveGuard(GuardSettings())`."""

from orchestrator.switch.guard.from_decision import FromDecision, settings_from
from orchestrator.switch.guard.guard import LiveGuard
from orchestrator.switch.guard.settings import GuardSettings

__all__ = ["FromDecision", "GuardSettings", "LiveGuard", "settings_from"]
