"""The experiment file as JSON Schema, for completion and checks in an editor.

`python -m orchestrator.spec.schema` writes it to docs/experiment.schema.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from orchestrator.spec.experiment import Experiment

DEFAULT_FILE = Path(__file__).parents[2] / "docs" / "experiment.schema.json"


def experiment_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the experiment file as it is written, before references resolve."""
    schema = Experiment.model_json_schema(mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Experiment",
        **{name: value for name, value in schema.items() if name != "title"},
    }


def schema_text() -> str:
    return json.dumps(experiment_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(schema_text(), encoding="utf-8")
    print(file)
