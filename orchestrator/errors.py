"""Everything this product raises on purpose.

    OrchestratorError                  exit 70
    ├── SpecError                      exit 2    the experiment file, or a flag, is wrong
    ├── ModelUnavailable               exit 2    a model cannot be had here; says what to do
    ├── WorkloadError                  exit 2    a prompt set cannot be read or is too small
    ├── EnvironmentChanged             exit 2    another engine, device or machine than before
    ├── DeploymentError                exit 3    an engine did not start, or died
    │   └── DevicesLost                         the node of its devices is gone
    ├── TrialsFailed                   exit 4    the sweep finished; some trials did not
    ├── MeasurementInvalid             exit 5    nothing valid was measured
    ├── ClientFailed                   exit 70   the load generator itself died
    ├── MissingExtra                   exit 6    an optional package is not installed
    ├── SwitchUnreachable              exit 3    a canary switch's admin API does not answer
    ├── TrackingUnavailable            exit 70   MLflow could not be written (a sweep goes on)
    ├── StoreError                     exit 70   records could not be written or read back
    └── Interrupted                    exit 130  the user pressed Ctrl-C

A message says where, which rule, what value, and what to do next: it must be enough to act on.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class OrchestratorError(Exception):
    """Base of every deliberate error; `exit_status` is what the process ends with."""

    exit_status = 70


@dataclass(frozen=True)
class Fault:
    """One thing wrong in a file: `file:line key: rule, value, hint`.

    >>> str(Fault("x.yaml", 3, "sweep.batch_size", "must be >= 1", "0", "use 1 or more"))
    'x.yaml:3 sweep.batch_size: must be >= 1, got 0; use 1 or more'
    """

    file: str
    line: int | None
    key: str
    rule: str
    value: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = f"{place} {self.key}: {self.rule}" if self.key else f"{place}: {self.rule}"
        if self.value is not None:
            text += f", got {self.value}"
        if self.hint:
            text += f"; {self.hint}"
        return text


class SpecError(OrchestratorError):
    """The specification is wrong; carries every fault found, not only the first."""

    exit_status = 2

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in faults))


class ModelUnavailable(OrchestratorError):
    exit_status = 2


class WorkloadError(OrchestratorError):
    exit_status = 2


class EnvironmentChanged(OrchestratorError):
    """What is measured now would not be comparable with what the sweep holds."""

    exit_status = 2


@dataclass
class DeploymentError(OrchestratorError):
    """An engine did not start or died.

    `failure` is the class of the outcome (see `records.FailureClass`), `cause` one line, `log_tail`
    the end of what the engine wrote, `log_path` where the rest is.
    """

    failure: str
    cause: str
    log_tail: str = ""
    log_path: str | None = None
    exit_status: int = field(default=3, init=False)

    def __str__(self) -> str:
        where = f"\n  full log: {self.log_path}" if self.log_path else ""
        return f"{self.failure}: {self.cause}{where}"

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str | None]]:
        return (type(self), (self.failure, self.cause, self.log_tail, self.log_path))


class DevicesLost(DeploymentError):
    """The node that an engine ran on, or was to run on, is gone. The trial can move on."""


class TrialsFailed(OrchestratorError):
    exit_status = 4


class MeasurementInvalid(OrchestratorError):
    exit_status = 5


class ClientFailed(OrchestratorError):
    """The load generator died; `failure` is the outcome's class (see `records.FailureClass`)."""

    exit_status = 70
    failure = "client_failed"


class MissingExtra(OrchestratorError):
    exit_status = 6

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{needed_for} needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'speculation-orchestrator[{extra}]'"
        )


class TrackingUnavailable(OrchestratorError):
    exit_status = 70


class SwitchUnreachable(OrchestratorError):
    exit_status = 3


class StoreError(OrchestratorError):
    exit_status = 70


class Interrupted(OrchestratorError):
    exit_status = 130
