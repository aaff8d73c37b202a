"""The catalogue as a person sees it."""

from __future__ import annotations

import argparse

import pytest

from orchestrator.cli import models
from orchestrator.models.catalogue import CATALOGUE


def test_every_name_is_whole_in_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert models.run(argparse.Namespace(action=None)) == 0
    lines = capsys.readouterr().out.splitlines()
    table = [line for line in lines if " is in " not in line]
    assert all(len(line) <= 80 for line in table)
    for entry in CATALOGUE.values():
        assert sum(line.startswith(f"{entry.name} ") for line in table) == 1
