"""What is true of a simulated server, in closed form: the answers an experiment must recover.

Source: Leviathan et al. (arXiv 2211.17192) for tokens a step; MagicDec (2408.11049) for the bar.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.adapters.simulated.profile import SimulatedModel


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A closed loop of equal requests that never drains."""

    decode_steps: float
    """Engine steps from a request's first token to its last, on average."""
    mean_context_tokens: float
    """Tokens in the cache for one decoding sequence, averaged over its steps."""
    step_s: float
    tpot_s: float | None
    """None for answers of one token."""
    output_tok_per_s: float


@dataclass(frozen=True, slots=True)
class TrueSpeedup:
    speedup_tpot: float | None
    speedup_throughput: float


def expected_tokens_per_step(conditional: Sequence[float]) -> float:
    """Tokens a verified draft yields on average: the true acceptance length.

    Formula: 1 + Σ_i Π_{j<=i} c_j, c_j the conditional acceptance of position j. With every c equal
    to a this is (1 − a^(K+1)) / (1 − a).
    """
    return 1.0 + float(np.cumprod(np.asarray(conditional, dtype=float)).sum())


def tokens_per_step_distribution(conditional: Sequence[float]) -> tuple[float, ...]:
    """Probability of 1, 2, …, K+1 tokens from one verified draft."""
    at_least = [1.0, *np.cumprod(np.asarray(conditional, dtype=float)).tolist(), 0.0]
    return tuple(a - b for a, b in itertools.pairwise(at_least))


def break_even_acceptance_length(
    model: SimulatedModel, *, batch: int, context: float, length: int, method: str | None = None
) -> float:
    """AL*: acceptance length at which a speculative step is worth its time.

    Formula: time of a step that drafts and verifies `length` tokens for each of `batch` sequences /
    time of a baseline step, both with `context` tokens cached for each sequence.
    """
    kv = batch * context
    speculative = model.step(kv, batch, length, method=method)
    return speculative.total_s / model.step(kv, batch).total_s


def break_even_acceptance(
    model: SimulatedModel, *, batch: int, context: float, length: int, method: str | None = None
) -> float | None:
    """The equal conditional acceptance of all positions that just breaks even.

    Formula: a with (1 − a^(K+1)) / (1 − a) = AL*, by bisection.
    Undefined: None when even full acceptance is not enough.
    """
    wanted = break_even_acceptance_length(
        model, batch=batch, context=context, length=length, method=method
    )
    low, high = 0.0, 1.0
    if wanted > length + 1:
        return None
    for _ in range(60):
        middle = (low + high) / 2
        if expected_tokens_per_step([middle] * length) < wanted:
            low = middle
        else:
            high = middle
    return high


def decode_path(
    prompt_tokens: int, output_tokens: int, conditional: Sequence[float]
) -> tuple[float, float]:
    """Expected steps from first to last token, and expected mean context over them.

    Formula: with r tokens to go, N(r) = 1 + Σ_n p_n·N(r − n) and the same for the sum of contexts,
    where the context before the step is prompt + output − r − 1; what overshoots the end is cut.
    Undefined: (0, prompt) for answers of one token.
    """
    chances = tokens_per_step_distribution(conditional)
    steps, contexts = [0.0], [0.0]
    for left in range(1, output_tokens):
        after = [max(0, left - n) for n in range(1, len(chances) + 1)]
        context = prompt_tokens + output_tokens - left - 1
        steps.append(1 + sum(p * steps[r] for p, r in zip(chances, after, strict=True)))
        contexts.append(context + sum(p * contexts[r] for p, r in zip(chances, after, strict=True)))
    if output_tokens < 2:
        return 0.0, float(prompt_tokens)
    return steps[-1], contexts[-1] / steps[-1]


def steady_state(
    model: SimulatedModel,
    *,
    batch: int,
    prompt_tokens: int,
    output_tokens: int,
    length: int = 0,
    method: str | None = None,
    conditional: Sequence[float] | None = None,
) -> SteadyState:
    """Step time, TPOT and throughput of `batch` requests in flight for ever.

    Formula: a request takes 1 prompt step and S decoding steps. Without speculation all requests
    stay in step with one another. With it their phases drift apart and are independent, so that a
    request is in its prompt step with probability f = 1/(S+1); step time is linear in the numbers
    of sequences, so its mean follows. Throughput = batch · output / ((S + 1) · mean step time);
    TPOT = S · (mean time of a step given that this request decodes) / (output − 1).
    Exact (for look-up methods up to their share of the prompts' pass) while the prompts that meet
    in a step fit its token budget, nothing is preempted, and no schedule changes the length;
    noise has mean one and changes nothing.
    """
    rates = model.conditional_acceptance(length) if conditional is None else tuple(conditional)
    steps, context = decode_path(prompt_tokens, output_tokens, rates[:length])
    if length == 0:
        prompt_s = model.step(0, 0, prefill_tokens=batch * prompt_tokens).total_s
        decode_s = model.step(batch * context, batch).total_s
        cycle_s = prompt_s + steps * decode_s
        tpot_s = decode_s if output_tokens > 1 else None
        step_s = cycle_s / (steps + 1)
        return SteadyState(steps, context, step_s, tpot_s, batch * output_tokens / cycle_s)
    share = 1 / (steps + 1)

    def mean_step_s(certain: int, others: int) -> float:
        decoding = certain + others * (1 - share)
        drafting = 1.0 if certain else 1 - share**others
        idle = model.step(0, 0).total_s
        # Averaged over steps with and without a draft: what a step costs given that it drafts.
        given = decoding / drafting if drafting else 0.0
        busy = model.step(given * context, given, length, method=method).total_s
        prompts = model.step(0, 0, prefill_tokens=others * share * prompt_tokens).total_s - idle
        return drafting * busy + (1 - drafting) * idle + prompts

    step_s = mean_step_s(0, batch)
    tpot_s = steps * mean_step_s(1, batch - 1) / (output_tokens - 1) if output_tokens > 1 else None
    return SteadyState(
        steps, context, step_s, tpot_s, batch * output_tokens / ((steps + 1) * step_s)
    )


def true_speedup(
    model: SimulatedModel,
    *,
    batch: int,
    prompt_tokens: int,
    output_tokens: int,
    length: int,
    method: str | None = None,
    conditional: Sequence[float] | None = None,
) -> TrueSpeedup:
    """Baseline over speculative TPOT, speculative over baseline throughput; > 1 = it pays."""
    base = steady_state(
        model, batch=batch, prompt_tokens=prompt_tokens, output_tokens=output_tokens
    )
    speculative = steady_state(
        model,
        batch=batch,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        length=length,
        method=method,
        conditional=conditional,
    )
    tpot = None
    if base.tpot_s is not None and speculative.tpot_s is not None:
        tpot = base.tpot_s / speculative.tpot_s
    return TrueSpeedup(tpot, speculative.output_tok_per_s / base.output_tok_per_s)
