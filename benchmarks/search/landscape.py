"""A landscape of 200 cells whose best is known: two ways to speculate, ten lengths, five batch
sizes, two temperatures.

Everything is the simulated engine's arithmetic, so every cell's true speedup has a closed form.
"""

from __future__ import annotations

from orchestrator.adapters.simulated.configuration import configure
from orchestrator.adapters.simulated.truth import true_speedup
from orchestrator.plan.trial import Trial

PROMPT_TOKENS = 60
OUTPUT_TOKENS = 96

EXPERIMENT = """\
name: landscape
target: simulated-8b
engine:
  simulated:
    profile: fast
    start_s: 20
    target_token_s: 1.0e-4
    acceptance: [0.92, 0.9, 0.88, 0.86, 0.84, 0.82, 0.2]
    temperature_penalty: 0.4
    jitter_sigma: 0.02
    slow_jitter_sigma: {sigma}
    slow_jitter_correlation_s: 0.5
sweep:
  speculation:
    - {{method: ngram, speculation_length: [1, 2, 3, 4, 6, 8, 10, 12, 14, 16]}}
    - {{method: draft_model, draft: small, speculation_length: [1, 2, 3, 4, 6, 8, 10, 12, 14, 16]}}
  batch_size: [1, 2, 3, 4, 6]
  temperature: [0.0, 0.8]
workloads:
  - {{name: chat, prompts: "bundled:chat", output_tokens: 96, allow_reuse: true}}
measure: {{pairs: {{min: 6, max: 24}}, requests_per_block: 6}}
seed: {seed}
search: {search}
"""


def truth(trial: Trial) -> float:
    """The cell's true speedup in throughput."""
    configuration = configure(trial.pair.speculative)
    cell = trial.cell
    found = true_speedup(
        configuration.model,
        batch=cell.batch_size,
        prompt_tokens=PROMPT_TOKENS,
        output_tokens=OUTPUT_TOKENS,
        length=cell.speculation_length,
        method=cell.method,
        conditional=configuration.model.conditional_acceptance(
            cell.speculation_length, temperature=cell.sampling.temperature
        ),
    )
    return found.speedup_throughput
