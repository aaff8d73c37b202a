"""Where an engine step's time goes: drafting, verifying, sampling, and the rest.

vLLM names the phases of its model runner (`record_function_or_nullcontext("gpu_model_runner: …")`)
and lets an engine argument, `worker_extension_cls`, add methods to its workers. This extension
puts a clock in place of the named contexts and notes where every step begins.

| stage | phases of vLLM's runner |
|---|---|
| draft | draft |
| verify | forward, postprocess (the target's forward pass and its logits) |
| sample | sample |
| overhead | the rest of the step: scheduling, input preparation, bookkeeping, messages |

A step lasts from its beginning to the beginning of the next one, and counts only if that next one
goes on with one of its requests: otherwise the engine was idle in between. On CUDA the clock is the
device's own (events, read once they have passed, so that nothing waits for them); the host's would
time the launching. On a CPU it is the host's.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

RUNNER_MODULE = "vllm.v1.worker.gpu_model_runner"
HOOK = "record_function_or_nullcontext"
PREFIX = "gpu_model_runner: "
STAGES = {"draft": "draft", "forward": "verify", "postprocess": "verify", "sample": "sample"}
ROW = ("requests", "context", "prefill", "speculation_length", "steps", "draft_s", "verify_s",
       "sample_s", "step_s", "step_s_squared", "tokens")  # fmt: skip
"""Of every row that `orchestrator_stages` returns: what identifies it, then sums over its steps."""
_IDENTITY = 4
_PENDING_MAX = 4096


class Clock(Protocol):
    def mark(self) -> Any: ...

    def passed(self, mark: Any) -> bool:
        """Whether the moment lies behind, so that it can be read."""

    def seconds(self, begin: Any, end: Any) -> float: ...


class HostClock:
    """Right where the work is done by the time the call returns."""

    def mark(self) -> float:
        return time.perf_counter()

    def passed(self, mark: Any) -> bool:
        return True

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


class CudaClock:
    """Events in the stream the work runs in; reading them never blocks."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def mark(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        return bool(mark.query())

    def seconds(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) * 1e-3


class _Step:
    __slots__ = ("begin", "end", "ids", "key", "marks", "tokens")

    def __init__(self, begin: Any, key: tuple[int, ...], ids: frozenset[str], tokens: int) -> None:
        self.begin, self.key, self.ids, self.tokens = begin, key, ids, tokens
        self.end: Any = None
        self.marks: list[tuple[str, Any, Any]] = []


class StageTimer:
    """Sums the stages of steps by (requests, context length, prefill or not, tokens proposed)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step: _Step | None = None
        self._pending: deque[_Step] = deque()
        self._sums: dict[tuple[int, ...], list[float]] = {}
        self.dropped = 0
        """Steps whose end had not passed when too many were waiting."""

    def begin(self, key: tuple[int, ...], ids: frozenset[str], tokens: int) -> None:
        """A step begins, with these requests."""
        now = self._clock.mark()
        last = self._step
        if last is not None and last.ids & ids:
            last.end = now
            self._pending.append(last)
        self._step = _Step(now, key, ids, tokens)
        self._settle()

    def stage(self, name: str) -> _Stage:
        return _Stage(self, name)

    def note(self, name: str, begin: Any, end: Any) -> None:
        if self._step is not None:
            self._step.marks.append((name, begin, end))

    def rows(self) -> list[list[float]]:
        """Cumulative sums, in the columns of `ROW`."""
        self._settle()
        return [[*map(float, key), *sums] for key, sums in sorted(self._sums.items())]

    def _settle(self) -> None:
        while self._pending and self._clock.passed(self._pending[0].end):
            self._add(self._pending.popleft())
        while len(self._pending) > _PENDING_MAX:
            self._pending.popleft()
            self.dropped += 1

    def _add(self, step: _Step) -> None:
        stages = {"draft": 0.0, "verify": 0.0, "sample": 0.0}
        for name, begin, end in step.marks:
            stages[name] += self._clock.seconds(begin, end)
        whole = self._clock.seconds(step.begin, step.end)
        row = (1.0, *stages.values(), whole, whole * whole, float(step.tokens))
        sums = self._sums.setdefault(step.key, [0.0] * len(row))
        for index, value in enumerate(row):
            sums[index] += value


class _Stage:
    """The context that stands in for vLLM's own."""

    __slots__ = ("_begin", "_name", "_timer")

    def __init__(self, timer: StageTimer, name: str) -> None:
        self._timer, self._name = timer, name

    def __enter__(self) -> None:
        self._begin = self._timer._clock.mark()

    def __exit__(self, *_: object) -> None:
        self._timer.note(self._name, self._begin, self._timer._clock.mark())


def context_bucket(tokens: float) -> int:
    """The power of two at or above: contexts of 65 to 128 tokens are 128."""
    return 1 << (math.ceil(tokens) - 1).bit_length() if tokens > 1 else 1


def step_of(scheduled: Any) -> tuple[tuple[int, ...], frozenset[str], int]:
    """(key, request ids, tokens) of vLLM's `SchedulerOutput`.

    A step reads prompt if it begins a request, or gives one more tokens than its drafts and one.
    """
    counts: dict[str, int] = scheduled.num_scheduled_tokens
    drafts: dict[str, Any] = scheduled.scheduled_spec_decode_tokens
    cached = scheduled.scheduled_cached_reqs
    prefill = bool(scheduled.scheduled_new_reqs) or any(
        count > 1 + len(drafts.get(name, ())) for name, count in counts.items()
    )
    computed = list(cached.num_computed_tokens)
    context = context_bucket(sum(computed) / len(computed)) if computed else 0
    proposed = max((len(tokens) for tokens in drafts.values()), default=0)
    key = (len(counts), context, int(prefill), proposed)
    return key, frozenset(counts), sum(counts.values())


class StageTimerExtension:
    """Mixed into vLLM's worker; its methods are reached with `collective_rpc`."""

    model_runner: Any
    orchestrator_timer: Any = None

    def orchestrator_time_stages(self) -> str | None:
        """Begin to time. Returns why that cannot be, or None."""
        import importlib

        import torch

        module = importlib.import_module(RUNNER_MODULE)
        runner = self.model_runner
        base = getattr(module, "GPUModelRunner", ())
        if not hasattr(module, HOOK) or not isinstance(runner, base):
            return f"{type(runner).__module__}.{type(runner).__name__} does not name its phases"
        device = getattr(getattr(runner, "device", None), "type", "cpu")
        if device not in ("cpu", "cuda"):
            return f"no clock for a device of type {device}"
        clock: Clock = CudaClock(torch) if device == "cuda" else HostClock()
        timer = StageTimer(clock)
        _replace_contexts(module, timer)
        _note_steps(runner, timer)
        self.orchestrator_timer = timer
        return None

    def orchestrator_stages(self) -> list[list[float]]:
        """Cumulative sums of this worker; see `ROW`."""
        return [] if self.orchestrator_timer is None else self.orchestrator_timer.rows()


def _replace_contexts(module: Any, timer: StageTimer) -> None:
    original: Callable[[str], Any] = getattr(module, HOOK)

    def context(name: str) -> Any:
        stage = STAGES.get(name.removeprefix(PREFIX))
        return timer.stage(stage) if stage is not None else original(name)

    setattr(module, HOOK, context)


def _note_steps(runner: Any, timer: StageTimer) -> None:
    execute = runner.execute_model

    def execute_model(scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        if scheduler_output.num_scheduled_tokens:
            timer.begin(*step_of(scheduler_output))
        return execute(scheduler_output, *args, **kwargs)

    runner.execute_model = execute_model
