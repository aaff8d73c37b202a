"""From files to a switch: the example, a decision, records as a workload."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.cli import switch as verb
from orchestrator.errors import SpecError
from orchestrator.serving.canary import canary_from, config_from
from orchestrator.serving.serve_file import parse_serve_file, read_serve_file
from orchestrator.switch.config import SwitchConfig
from orchestrator.switch.export import prompts, trace_csv
from orchestrator.workloads.load import load_prompts
from orchestrator.workloads.traces import load_trace

pytestmark = pytest.mark.slow  # imports Ray Serve

EXAMPLE = Path(__file__).parents[3] / "serve_configs" / "canary.yaml"
GUARD = {
    "acceptance_length_min": 1.4,
    "acceptance_rate_min": 0.3,
    "latency_max_s": {"ttft_p95_s": 0.5, "itl_mean_s": 0.1},
    "latency_from": "slo",
    "load_max": 8.0,
    "load_unit": "in_flight",
}


def test_the_example_is_whole_and_names_every_field() -> None:
    file = read_serve_file(EXAMPLE)
    assert file.switch is not None and file.switch.route_prefix == "/"
    assert [(one.name, one.route_prefix) for one in file.applications] == [
        ("baseline", None),
        ("speculative", None),
    ]
    for one in file.applications:
        assert one.engine.direct == f"{file.switch.config.state}/{one.name}.sock"
        assert file.switch.config.address(one.name) == f"unix:{one.engine.direct}"  # type: ignore[arg-type]
    text = EXAMPLE.read_text()
    written = yaml.safe_load(text)["applications"][2]["args"]
    assert set(written) == set(SwitchConfig.model_fields)
    for name, value in written.items():
        section = getattr(file.switch.config, name)
        if hasattr(type(section), "model_fields") and name != "policy":
            assert set(value) == set(type(section).model_fields), name


def test_faults_of_a_switch_say_where() -> None:
    text = EXAMPLE.read_text().replace("period_s: 4.0", "perod_s: 4.0")
    text = text.replace("host: 127.0.0.1\n        port: 8001", "host: 0.0.0.0\n        port: 8001")
    with pytest.raises(SpecError) as raised:
        parse_serve_file(text, "x.yaml")
    said = str(raised.value)
    assert "applications[2].args.health.perod_s: is not a known key" in said
    assert "admin.host: must be a loopback address unless" in said
    assert "x.yaml:" in said


def test_a_decision_becomes_a_ramp_within_its_limits() -> None:
    config = config_from(GUARD, state="/tmp/s")
    assert config.policy.mode == "ramp"
    load = config.policy.load
    assert load is not None and (load.off_above, load.on_below, load.unit) == (8, 6, "in_flight")
    assert config.guard is not None
    assert config.guard.acceptance.floor == 0.3
    assert config.guard.slo == {"ttft_p95_s": 0.5}


def decision(folder: Path, **changes: Any) -> Path:
    side = read_serve_file(EXAMPLE.parent / "side_by_side.yaml")
    assert len(side.applications) == 2
    (folder / "deploy.yaml").write_text((EXAMPLE.parent / "side_by_side.yaml").read_text())
    kept = {"name": "mine", "simulated": False, "facts": {}, "cells": [], "suites": []}
    plain = {
        "schema": 1,
        "advice": "on",
        "simulated": False,
        "sweep": {"name": "mine"},
        "configuration": {"serve_config": "deploy.yaml", "speculation": {}},
        "guard": GUARD,
        "expires_with": [],
        "kept": kept,
        **changes,
    }
    path = folder / "decision.json"
    path.write_text(json.dumps(plain))
    return path


def test_serve_from_a_decision(tmp_path: Path) -> None:
    file, notes = canary_from(decision(tmp_path), state="/tmp/state")

    arms = {one.name: one for one in file.applications}
    assert {one.route_prefix for one in file.applications} == {None}
    assert arms["speculative"].engine.direct == "/tmp/state/speculative.sock"
    assert arms["speculative"].engine.engine["per_request_spec_decode_metrics"] == "summary"
    assert "per_request_spec_decode_metrics" not in arms["baseline"].engine.engine
    assert file.switch is not None and file.switch.config.policy.mode == "ramp"
    assert any("itl_mean_s" in note for note in notes)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"configuration": None, "advice": "off"}, "must recommend a deployment, got off"),
        ({"configuration": {"serve_config": None}}, "engines that the sweep started itself"),
    ],
)
def test_a_decision_without_a_pair_is_refused(
    changes: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=rule):
        canary_from(decision(tmp_path, **changes), state="/tmp/state")


def record(at: float, **more: Any) -> dict[str, Any]:
    return {
        "id": f"r{at}",
        "at": 1_700_000_000 + at,
        "status": 200,
        "prompt_tokens": 10,
        "output_tokens": 20,
        **more,
    }


LINES = [
    record(2.5, output_tokens=7),
    record(0.0, category="code", messages=[{"role": "user", "content": "Hello"}]),
    record(1.0, mirrored=True),
    record(1.5, status=500),
    record(2.0, output_tokens=None),
]


def test_records_become_a_trace_that_a_sweep_reads(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(trace_csv(LINES))
    trace = load_trace("t.csv", base=tmp_path)
    assert trace.offsets_s == (0.0, 2.5)
    assert (trace.input_tokens, trace.output_tokens) == ((10, 10), (20, 7))


def test_texts_become_prompts_where_the_operator_kept_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state" / "requests"
    state.mkdir(parents=True)
    (state / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES) + '{"half')
    out = {"trace": tmp_path / "t.csv", "prompts": tmp_path / "p.jsonl"}
    assert verb._export(argparse.Namespace(state=tmp_path / "state", **out)) == 0
    assert "2 arrivals of 5 records" in capsys.readouterr().out
    read = load_prompts(str(out["prompts"]), base=tmp_path)
    assert [(one.category, one.turns) for one in read.prompts] == [("code", ("Hello",))]
    assert prompts([record(1.0)]) == []


def test_flags_become_a_policy(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)

    def policy(*flags: str) -> dict[str, Any]:
        return verb.policy_of(parser.parse_args(["set", *flags, "--why", "x"]))

    assert policy("--off") == {"mode": "off"}
    assert policy("--share", "0.1") == {"mode": "fixed", "share": 0.1}
    assert policy("--ramp", "0.1,1", "--hold", "5") == {
        "mode": "ramp",
        "ramp": {"hold_s": 5.0, "steps": [0.1, 1.0]},
    }
    assert policy("--ramp") == {"mode": "ramp", "ramp": {}}
    assert policy("--shadow", "0.2")["shadow"] == {"share": 0.2}
    (tmp_path / "p.yaml").write_text("mode: fixed\nshare: 0.3\n")
    assert policy("--policy", str(tmp_path / "p.yaml")) == {"mode": "fixed", "share": 0.3}
    for wrong in (("--ramp", "a,b"), ("--off", "--hold", "3"), ("--policy", "/none")):
        with pytest.raises(SpecError):
            policy(*wrong)
