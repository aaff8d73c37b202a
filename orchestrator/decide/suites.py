"""The suites' judgements within a sweep's result."""

from __future__ import annotations

from orchestrator.decide.message import Message, said
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.run.suites.record import SuiteResult


def suites_of(result: SweepResult) -> tuple[SuiteResult, ...]:
    return tuple(result.suites)


def suite_said(name: str) -> Message:
    """A suite's name, as a message."""
    return said(f"suite.{name}")


def of_suite(result: SweepResult, name: str) -> tuple[SuiteResult, ...]:
    return tuple(suite for suite in suites_of(result) if suite.suite == name)
