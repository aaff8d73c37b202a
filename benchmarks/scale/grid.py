"""Experiment files of any size, on simulated engines."""

from __future__ import annotations

from pathlib import Path

_PER_TEMPERATURE = 2 * 10 * 2 * 2
"""Methods x speculation lengths x batch sizes x workloads."""

_TEXT = """\
name: {name}
target: simulated-8b
engine:
  simulated: {{profile: fast, acceptance: 0.8}}
sweep:
  speculation:
    - {{method: ngram, speculation_length: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}
    - {{method: suffix, speculation_length: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}
  batch_size: [1, 2]
  temperature: {temperatures}
workloads:
  - {{name: chat, prompts: bundled:chat, output_tokens: 16, allow_reuse: true}}
  - {{name: code, prompts: bundled:code, output_tokens: 16, allow_reuse: true}}
measure: {{pairs: {{min: 2, max: 2}}}}
seed: 3
"""


def write_grid(folder: Path, name: str, cells: int) -> Path:
    """An experiment of `cells` cells, rounded up to whole temperatures (80 cells each)."""
    temperatures = [step / 1000 for step in range(-(-cells // _PER_TEMPERATURE))]
    path = folder / f"{name}.yaml"
    path.write_text(_TEXT.format(name=name, temperatures=temperatures), encoding="utf-8")
    return path
