"""Why an engine did not start: the class and the cause in one line, from what it wrote. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.records import FailureClass

CAUSE_LENGTH = 400


@dataclass(frozen=True)
class Failure:
    failure: FailureClass
    cause: str


_OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|MemoryError|Cannot allocate memory|bad_alloc"
    r"|No available memory for the cache blocks|KV cache.{0,80}(larger|exceed|not enough)"
    r"|larger than the (maximum|available)|is less than desired (CPU|GPU) memory"
    r"|Available memory on node|Free memory on device|DefaultCPUAllocator|oom-kill|Killed process",
    re.IGNORECASE,
)
_BAD_CONFIGURATION = re.compile(
    r"BadEngineArgument|ValidationError|validation error|unrecognized arguments"
    r"|not an engine argument|unexpected keyword argument|is not supported|not support|Unknown"
    r"|Invalid value|must be (one of|greater|less|a |an |at least|divisible|positive)"
    r"|should be (one of|greater|less)|not compatible|incompatible|is greater than the derived"
    r"|ModelUnavailable|does not exist|not a valid model identifier|Repo id must be|No such file"
    r"|RepositoryNotFound|LocalEntryNotFound|OfflineModeIsEnabled|GatedRepo|Cannot find the config",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Unavailable|Argument))(?:: ?(.*))?$"
)
_PREFIX = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?:ERROR|WARNING|INFO|CRITICAL)\s[\d-]+ [\d:.]+ \[[^\]]+\]\s?)?"
)
_WRAPPERS = re.compile(
    r"Engine core initialization failed|EngineDeadError|See root cause above|RayTaskError"
    r"|Failed core proc|WorkerProc initialization failed|The actor died|SystemExit"
)
_NOT_FOUND = re.compile(
    r"not a valid model identifier|Repo id must be|RepositoryNotFound|LocalEntryNotFound"
    r"|OfflineModeIsEnabled|GatedRepo|couldn't connect|ModelUnavailable",
    re.IGNORECASE,
)


def classify(text: str) -> Failure:
    """The class and the cause of a failed start.

    `text` is the end of the engine's log or a traceback. The cause is the innermost error that is
    not merely a report of another one ("Engine core initialization failed").
    """
    errors = _errors(text)
    cause = errors[0] if errors else _last_line(text)
    own = [line for line in errors if not _WRAPPERS.search(line)]
    if own:
        cause = own[-1]
        memory = next((line for line in own if _OUT_OF_MEMORY.search(line)), None)
        cause = memory or cause
    if _OUT_OF_MEMORY.search(cause):
        return Failure(FailureClass.OUT_OF_MEMORY, _one_line(cause))
    if _NOT_FOUND.search(cause):
        return Failure(FailureClass.BAD_CONFIGURATION, _one_line(f"model not found: {cause}"))
    if _BAD_CONFIGURATION.search(cause):
        return Failure(FailureClass.BAD_CONFIGURATION, _one_line(cause))
    if not errors and _OUT_OF_MEMORY.search(text):
        return Failure(FailureClass.OUT_OF_MEMORY, _one_line(cause))
    return Failure(FailureClass.START_FAILED, _one_line(cause or "the engine wrote nothing"))


def _errors(text: str) -> list[str]:
    """Every `SomethingError: message` line, in order, with the line after it if it says more."""
    lines = [_PREFIX.sub("", line).rstrip() for line in text.splitlines()]
    found = []
    for index, line in enumerate(lines):
        match = _ERROR_LINE.match(line.strip())
        if not match or line.startswith((" ", "\t")):
            continue
        kind, message = match.group(1), match.group(2) or ""
        if kind == "ValidationError":
            message = " ".join([message, *(part.strip() for part in lines[index + 1 : index + 3])])
        found.append(f"{kind}: {message}".strip(": "))
    return found


def _last_line(text: str) -> str:
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _one_line(text: str) -> str:
    line = re.sub(r"\s+", " ", text).strip()
    return line if len(line) <= CAUSE_LENGTH else line[: CAUSE_LENGTH - 1] + "…"
