"""Experiment files written for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import Fault, SpecError
from orchestrator.spec.experiment import Experiment
from orchestrator.spec.read import read_experiment

GOOD = """\
name: small
target: tiny
sweep:
  speculation:
    - {method: ngram, speculation_length: [2, 4]}
workloads:
  - {name: chat, prompts: bundled:chat, output_tokens: 64}
"""


def read_text(folder: Path, text: str) -> Experiment:
    file = folder / "x.yaml"
    file.write_text(text, encoding="utf-8")
    return read_experiment(file)


def faults_of(folder: Path, text: str) -> list[Fault]:
    with pytest.raises(SpecError) as caught:
        read_text(folder, text)
    return list(caught.value.faults)


def only_fault(folder: Path, text: str) -> Fault:
    faults = faults_of(folder, text)
    assert len(faults) == 1, "\n".join(map(str, faults))
    return faults[0]
