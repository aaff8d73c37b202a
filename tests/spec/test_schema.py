"""The JSON Schema in docs is the one of this code, and agrees with the reader."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from orchestrator.spec.schema import DEFAULT_FILE, experiment_schema, schema_text
from tests.spec.written import GOOD

EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.yaml"))


def test_the_file_in_docs_is_current() -> None:
    """If this fails: python -m orchestrator.spec.schema"""
    assert DEFAULT_FILE.read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_our_experiments_satisfy_it(file: Path) -> None:
    jsonschema.validate(yaml.safe_load(file.read_text()), experiment_schema())


@pytest.mark.parametrize(
    "wrong",
    [
        "seeed: 1",
        "search: {algorithm: optimal}",
        "load: {mode: opn}",
        "measure: {confidence: 2}",
        "engine: {max_model_len: 0}",
    ],
)
def test_an_editor_sees_what_the_reader_would_refuse(wrong: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(GOOD + wrong), experiment_schema())
