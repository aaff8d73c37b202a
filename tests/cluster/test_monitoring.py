"""Prometheus and Grafana show what exists: nothing of the dashboard is made up."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.serving.switch import metrics_page
from orchestrator.switch.config import Admin
from tests.cluster.files import CLUSTER, ROOT, document, documents

FOLDER = CLUSTER / "monitoring"
BOARD: dict[str, Any] = json.loads((FOLDER / "grafana/speculation.json").read_text("utf-8"))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
RULES = [rule for group in document(FOLDER / "rules.yml")["groups"] for rule in group["rules"]]
SUFFIX = re.compile(r"_(total|bucket|sum|count)$")


def metrics(prefix: str) -> set[str]:
    return {name for text in EXPRESSIONS for name in re.findall(rf"\b{prefix}[a-z0-9_]+", text)}


def package_folder(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed here: its metrics cannot be looked up")
    return Path(found.origin).parent


def test_every_metric_of_vllm_is_in_the_installed_vllm() -> None:
    folder = package_folder("vllm") / "v1"
    files = [*(folder / "metrics").glob("*.py"), *(folder / "spec_decode").glob("*.py")]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    used = metrics("vllm:")
    assert len(used) >= 10
    # Prometheus' client adds _total to counters and _bucket to histograms.
    assert {name for name in used if f'"{SUFFIX.sub("", name)}"' not in source} == set()


def test_every_metric_of_ray_is_in_the_installed_rays_own_dashboards() -> None:
    folder = package_folder("ray") / "dashboard/modules/metrics/dashboards"
    source = "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    used = metrics("ray_")
    assert len(used) >= 5
    assert {name for name in used if not re.search(rf"\b{name}\b", source)} == set()


def test_every_metric_in_a_rule_is_in_the_installed_vllm_or_recorded_by_another() -> None:
    folder = package_folder("vllm") / "v1"
    files = [*(folder / "metrics").glob("*.py"), *(folder / "spec_decode").glob("*.py")]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    text = "\n".join(rule["expr"] for rule in RULES)
    used = set(re.findall(r"\bvllm:[a-z0-9_]+", text))
    assert len(used) >= 6
    assert {name for name in used if f'"{SUFFIX.sub("", name)}"' not in source} == set()
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    assert set(re.findall(r"\bspeculation:[a-z0-9_]+", text)) <= recorded


def test_every_metric_of_the_switch_is_one_that_it_shows() -> None:
    source = inspect.getsource(metrics_page)
    text = "\n".join([*EXPRESSIONS, *(rule["expr"] for rule in RULES)])
    used = set(re.findall(r"\bswitch_([a-z0-9_]+)", text))
    assert len(used) >= 6
    assert {n for n in used if not re.search(rf'"(switch_)?{SUFFIX.sub("", n)}"', source)} == set()


def test_the_switchs_job_is_right_once_its_marks_are_taken_away() -> None:
    text = (FOLDER / "prometheus.yml").read_text(encoding="utf-8")
    marked = text[text.index("  # - job_name: switch") :]
    (job,) = yaml.safe_load(marked.replace("  # ", "  "))
    port = Admin.model_fields["port"].default
    assert job["job_name"] == "switch"
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{port}"]}]
    assert "/cluster/monitoring/switch.token" in (ROOT / ".gitignore").read_text("utf-8").split()


def test_every_alert_says_what_to_do_and_is_tried_by_a_test() -> None:
    alerts = [rule for rule in RULES if "alert" in rule]
    tried = (FOLDER / "rules_test.yml").read_text(encoding="utf-8")
    assert len(alerts) >= 8
    for rule in alerts:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
        assert re.search(rf"alertname: {rule['alert']}\n +exp_alerts:", tried), rule["alert"]


def promtool(*arguments: str) -> None:
    tool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if tool is None:
        pytest.skip(
            "PROMTOOL IS MISSING: the rules were not tried; install Debian's package prometheus, "
            "or name the program in PROMTOOL"
        )
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_reads_the_configuration_and_its_rules() -> None:
    promtool("check", "config", "--lint=none", str(FOLDER / "prometheus.yml"))


def test_every_alert_fires_when_it_should_and_not_before() -> None:
    promtool("test", "rules", str(FOLDER / "rules_test.yml"))


def test_there_are_no_metrics_of_anything_else() -> None:
    words = {"sum", "rate", "by", "on", "max", "le", "arm", "position", "application", "Name",
             "histogram_quantile", "group_left", "State", "CPU", "GPU", "USED",
             "__rate_interval", "name", "acceptance_rate", "error_rate", "_p95_s",
            "evidence_"}  # fmt: skip
    for text in EXPRESSIONS:
        names = set(re.findall(r"[A-Za-z_][A-Za-z0-9_:]*", text)) - words
        assert all(name.startswith(("vllm:", "ray_", "switch_")) for name in names), text


def test_the_dashboard_is_one_that_grafana_reads() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert BOARD["uid"] and BOARD["title"] and BOARD["schemaVersion"] >= 36
    for panel in PANELS:
        assert panel["title"] and panel["description"]
        assert [target["refId"] for target in panel["targets"]] == sorted(
            {target["refId"] for target in panel["targets"]}
        )
        assert all(target["legendFormat"] for target in panel["targets"])


def test_no_two_panels_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_panel_asks_the_source_that_is_provisioned() -> None:
    (source,) = document(FOLDER / "grafana/datasource.yaml")["datasources"]
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source["uid"]}


def test_brackets_of_every_expression_close() -> None:
    for text in EXPRESSIONS:
        for opening, closing in ("()", "[]", "{}"):
            assert text.count(opening) == text.count(closing), text


def test_both_arms_are_read_where_side_by_side_serves_them() -> None:
    served = document(ROOT / "serve_configs/side_by_side.yaml")
    routes = {a["name"]: f"{a['route_prefix']}/metrics" for a in served["applications"]}
    jobs = document(FOLDER / "prometheus.yml")["scrape_configs"]
    arms = {
        job["static_configs"][0]["labels"]["arm"]: job
        for job in jobs
        if job["job_name"].startswith("vllm")
    }
    assert {arm: job["metrics_path"] for arm, job in arms.items()} == routes
    port = served["http_options"]["port"]
    assert all(
        job["static_configs"][0]["targets"] == [f"127.0.0.1:{port}"] for job in arms.values()
    )
    endpoints = documents(FOLDER / "podmonitors.yaml")[1]["spec"]["podMetricsEndpoints"]
    assert {e["relabelings"][0]["replacement"]: e["path"] for e in endpoints} == routes


def test_ray_is_found_by_the_file_that_ray_writes() -> None:
    constants = (package_folder("ray") / "_private/ray_constants.py").read_text(encoding="utf-8")
    (name,) = re.findall(r'PROMETHEUS_SERVICE_DISCOVERY_FILE = "(.+)"', constants)
    (job,) = (
        job
        for job in document(FOLDER / "prometheus.yml")["scrape_configs"]
        if job["job_name"] == "ray"
    )
    assert job["file_sd_configs"] == [{"files": [f"/tmp/ray/{name}"]}]


def test_nothing_listens_beyond_loopback_and_the_password_comes_from_outside() -> None:
    services = document(FOLDER / "compose.yaml")["services"]
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    grafana = services["grafana"]["environment"]
    assert grafana["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert grafana["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_ADMIN_PASSWORD:?")
