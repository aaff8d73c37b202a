"""How long a plan will take: arithmetic on token counts and a stated speed, not a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.plan.facts import ModelFacts
from orchestrator.plan.plan import Estimate
from orchestrator.plan.prompts import requests_in_block, requests_in_warmup
from orchestrator.plan.trial import Trial

_UNCOUNTED_PROMPT_TOKENS = 200
_BEFORE_AND_AFTER_S = 20.0
"""Starting and stopping Ray, Serve and the tracking: 22 s on a 2-core machine."""
_BETWEEN_TRIALS_S = 2.0
"""Counters, records and Tune's own turn: 38 s over 18 trials on the same machine."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast one engine is taken to be.

    Formula: a step that decodes n requests takes step_s + n x token_s; a prompt of m tokens takes
    m x token_s.
    """

    step_s: float
    token_s: float
    engine_start_s: float
    said: str
    """The assumption in words, shown with every figure that rests on it."""


# One engine on a 2-core CPU, a 135M-parameter model in bfloat16 (269 MB): 34, 120 and 194 output
# tokens/s at 1, 4 and 8 streams.
_CPU_STEP_S_PER_BYTE = 0.0277 / 269e6
_CPU_TOKEN_S_PER_BYTE = 0.0017 / 269e6
# The fitted step model of SpecDecode-Bench (arXiv 2601.11580): an 8B model (16 GB) on one H100.
_GPU_STEP_S_PER_BYTE = 5.886e-3 / 16e9
_GPU_TOKEN_S_PER_BYTE = 2.101e-5 / 16e9
_GPU_STEP_FLOOR_S = 2e-3
"""Launching kernels takes this long however small the model is."""


def assumed_speed(model: ModelFacts, *, gpus: float | None) -> Speed:
    """From the size of the weights: decoding one step reads all of them.

    Formula: seconds proportional to bytes / GPUs, from one reference machine of each kind.
    Undefined: where the size is not known, 269 MB on a CPU and 16 GB on a GPU are taken.
    """
    if gpus == 0:
        size = model.parameter_bytes or 269_000_000
        return Speed(
            step_s=size * _CPU_STEP_S_PER_BYTE,
            token_s=size * _CPU_TOKEN_S_PER_BYTE,
            engine_start_s=25.0,
            said=f"a 2-core CPU and {_size(model, size)} of weights",
        )
    size = model.parameter_bytes or 16_000_000_000
    spread = gpus or 1.0
    return Speed(
        step_s=max(_GPU_STEP_FLOOR_S, size / spread * _GPU_STEP_S_PER_BYTE),
        token_s=size / spread * _GPU_TOKEN_S_PER_BYTE,
        engine_start_s=90.0,
        said=f"{spread:g} H100 an engine and {_size(model, size)} of weights",
    )


def _size(model: ModelFacts, size: int) -> str:
    shown = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
    return shown if model.parameter_bytes else f"{shown} (size not known)"


def block_s(trial: Trial, requests: int, speed: Speed, *, prompt_tokens: float) -> float:
    """How long one block of `requests` takes on one arm.

    Formula: closed load of n in flight: (requests / n) waves, each n prompts and output_tokens
    steps. Open load: requests / rate, or the same at the engine's cap when that is slower.
    """
    load, output = trial.cell.load, trial.cell.workload.output_tokens
    together = min(load.concurrency or trial.cell.batch_size, trial.cell.batch_size, requests) or 1
    wave = together * prompt_tokens * speed.token_s
    wave += output * (speed.step_s + together * speed.token_s)
    served = requests / together * wave
    if load.mode == "closed" or load.rate_rps is None:
        return served
    return max(served, requests / load.rate_rps + wave)


def estimate(
    trials: Sequence[Trial],
    *,
    engine_starts: int,
    speed: Speed,
    prompt_tokens: Mapping[str, float | None],
    devices_per_pair: float,
    device: Literal["GPU", "host"],
    pairs_at_once: int,
) -> Estimate:
    """Least and most time for `trials`.

    `prompt_tokens` is the mean prompt length by workload name; where None, 200 are taken.
    Formula: before and after + (engine starts x start + trials x (between + 2 arms x (warm-up +
    pairs x block))) / pairs at once.
    """
    least = most = _BETWEEN_TRIALS_S * len(trials)
    for trial in trials:
        mean = prompt_tokens.get(trial.cell.workload.name)
        tokens = mean if mean is not None else _UNCOUNTED_PROMPT_TOKENS
        block = block_s(trial, requests_in_block(trial), speed, prompt_tokens=tokens)
        warmup_requests = requests_in_warmup(trial)
        warmup = block_s(trial, warmup_requests, speed, prompt_tokens=tokens)
        warmup *= warmup_requests > 0
        least += 2 * (warmup + trial.protocol.pairs_min * block)
        most += 2 * (warmup + trial.protocol.pairs_max * block)
    start = engine_starts * speed.engine_start_s / pairs_at_once
    single = 1 / (speed.step_s + speed.token_s)
    counted = all(value is not None for value in prompt_tokens.values())
    return Estimate(
        least_s=_BEFORE_AND_AFTER_S + start + least / pairs_at_once,
        most_s=_BEFORE_AND_AFTER_S + start + most / pairs_at_once,
        start_s=start,
        devices_per_pair=devices_per_pair,
        device=device,
        pairs_at_once=pairs_at_once,
        token_s=speed.step_s + speed.token_s,
        assumption=(
            f"estimate, not a measurement: assumes {speed.said}, about {single:.0f} tokens/s for "
            f"one stream, {speed.engine_start_s:.0f} s an engine start, both arms equally fast"
            + ("" if counted else f"; prompts of {_UNCOUNTED_PROMPT_TOKENS} tokens")
        ),
    )
