"""The files in `serve_configs/`: valid for `serve deploy` and for this product's own command."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orchestrator.errors import SpecError
from orchestrator.models.catalogue import CATALOGUE
from orchestrator.serving.serve_file import read_serve_file

FOLDER = Path(__file__).parents[2] / "serve_configs"
FILES = ["baseline", "ngram", "draft_model", "eagle", "side_by_side"]

pytestmark = pytest.mark.slow  # imports Ray Serve


@pytest.mark.parametrize("name", FILES)
def test_is_a_serve_config(name: str) -> None:
    from ray.serve.schema import ServeDeploySchema

    content = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())

    schema = ServeDeploySchema.model_validate(content)

    assert schema.http_options.host == "127.0.0.1"


@pytest.mark.parametrize("name", FILES)
def test_names_models_of_the_catalogue(name: str) -> None:
    file = read_serve_file(FOLDER / f"{name}.yaml")

    for one in file.applications:
        assert one.route_prefix == f"/{one.name}"
        assert CATALOGUE[one.engine.target].kind == "target"
        speculation = one.engine.speculation
        if speculation is not None and speculation.draft is not None:
            assert one.engine.target in CATALOGUE[speculation.draft].targets


def test_side_by_side_is_the_two_arms_of_a_comparison() -> None:
    arms = read_serve_file(FOLDER / "side_by_side.yaml").applications

    assert [one.route_prefix for one in arms] == ["/baseline", "/speculative"]
    assert arms[0].engine.engine == arms[1].engine.engine
    assert arms[0].engine.speculation is None
    assert arms[1].engine.speculative_config() == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": 2,
    }


@pytest.mark.parametrize("name", FILES)
def test_builds_an_application(name: str) -> None:
    from orchestrator.serving.app import build

    for one in read_serve_file(FOLDER / f"{name}.yaml").applications:
        application = build(one.engine.model_dump(mode="json"))

        options = application._bound_deployment
        assert options.max_ongoing_requests == 4096
        assert "num_gpus" in options.ray_actor_options


def test_faults_say_where(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "http_options: {host: 0.0.0.0, port: 8000}\n"
        "applications:\n"
        "  - name: one\n"
        "    route_prefix: /one\n"
        "    import_path: orchestrator.serving.app:build\n"
        "    args:\n"
        "      target: smol\n"
        "      enigne: {}\n"
        "      speculation: {method: ngram}\n"
        "  - name: two\n"
        "    route_prefix: /two\n"
        "    import_path: other:app\n"
    )

    with pytest.raises(SpecError) as raised:
        read_serve_file(path)

    lines = [str(fault).removeprefix(f"{path}:") for fault in raised.value.faults]
    assert lines[0].startswith("1 http_options.host: must be a loopback address")
    assert "8 applications[0].args.enigne: is not a known key; did you mean 'engine'?" in lines
    assert any(
        line.startswith("9 applications[0].args.speculation.speculation_length: must be given")
        for line in lines
    )
    assert any(line.startswith("12 applications[1].import_path: must be orch") for line in lines)


def test_a_file_that_is_missing_or_is_not_yaml(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read_serve_file(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("applications: [")
    with pytest.raises(SpecError, match=r"bad\.yaml:1: is not YAML"):
        read_serve_file(tmp_path / "bad.yaml")
