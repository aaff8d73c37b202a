"""MLflow with PostgreSQL and an artifact store: secrets by reference, versions that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.files import CLUSTER, document, documents, environment_of

FOLDER = CLUSTER / "mlflow"
COMPOSE = document(FOLDER / "compose.yaml")
MANIFESTS = documents(FOLDER / "kubernetes.yaml")
SECRET = re.compile(r"PASSWORD|SECRET|ACCESS_KEY|TOKEN")


def containers() -> Iterator[dict[str, Any]]:
    for manifest in MANIFESTS:
        pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
        yield from [*pod.get("initContainers", []), *pod.get("containers", [])]


def of_kind(kind: str) -> dict[str, Any]:
    return {m["metadata"]["name"]: m for m in MANIFESTS if m["kind"] == kind}


def test_compose_takes_every_secret_from_outside_and_insists_on_it() -> None:
    seen = 0
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            if SECRET.search(name):
                seen += 1
                assert re.fullmatch(r"\$\{[A-Z0-9_]+:\?[^}]+\}", value), f"{name}: {value}"
    assert seen >= 6


def test_the_example_names_every_variable_and_holds_no_value() -> None:
    text = (FOLDER / "env.example").read_text(encoding="utf-8")
    given = dict(line.split("=", 1) for line in text.splitlines() if line and line[0] != "#")
    asked = set(re.findall(r"\$\{([A-Z0-9_]+):\?", (FOLDER / "compose.yaml").read_text("utf-8")))
    assert set(given) == asked
    assert set(given.values()) == {""}
    assert ".env" in (FOLDER / ".gitignore").read_text(encoding="utf-8").split()


def test_kubernetes_takes_every_secret_from_one_secret() -> None:
    keys = set()
    for container in containers():
        for name, entry in environment_of(container).items():
            if SECRET.search(name):
                reference = entry["valueFrom"]["secretKeyRef"]
                assert reference["name"] == "mlflow"
                keys.add(reference["key"])
    assert not of_kind("Secret")
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert keys == set(re.findall(r"--from-literal=([\w-]+)=", readme))


def test_no_address_holds_a_password() -> None:
    for file in FOLDER.iterdir():
        if file.is_file():
            assert not re.search(r"://[^\s/@:]+:[^\s/@]+@", file.read_text(encoding="utf-8"))


def test_only_mlflow_is_reachable_and_on_loopback() -> None:
    services = COMPOSE["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["mlflow"]
    assert services["mlflow"]["ports"] == ["${MLFLOW_BIND:-127.0.0.1}:5000:5000"]
    assert COMPOSE["networks"]["store"] == {"internal": True}


def test_both_store_runs_in_postgresql_and_artifacts_in_the_bucket() -> None:
    in_compose = COMPOSE["services"]["mlflow"]["environment"]
    deployment = of_kind("Deployment")["mlflow"]["spec"]["template"]["spec"]
    in_cluster = environment_of(deployment["containers"][0])
    for value in (
        in_compose["MLFLOW_BACKEND_STORE_URI"],
        in_cluster["MLFLOW_BACKEND_STORE_URI"]["value"],
    ):
        assert value.startswith("postgresql://mlflow@")
    assert in_compose["MLFLOW_ARTIFACTS_DESTINATION"] == "s3://mlflow"
    assert in_cluster["MLFLOW_ARTIFACTS_DESTINATION"]["value"] == "s3://mlflow"


@pytest.mark.slow  # importing MLflow takes seconds
@pytest.mark.parametrize("host", ["mlflow:5000", "localhost:5000", "127.0.0.1:5000"])
def test_the_server_knows_the_names_it_is_called_by(host: str) -> None:
    """MLflow matches the Host header, port included, and answers 403 to the rest."""
    from mlflow.server.security_utils import is_allowed_host_header

    in_compose = COMPOSE["services"]["mlflow"]["environment"]["MLFLOW_SERVER_ALLOWED_HOSTS"]
    default = re.fullmatch(r"\$\{MLFLOW_ALLOWED_HOSTS:-(.*)\}", in_compose)
    assert default is not None
    deployment = of_kind("Deployment")["mlflow"]["spec"]["template"]["spec"]
    in_cluster = environment_of(deployment["containers"][0])["MLFLOW_SERVER_ALLOWED_HOSTS"]["value"]
    for hosts in (default[1], in_cluster):
        assert is_allowed_host_header(hosts.split(","), host)
        assert not is_allowed_host_header(hosts.split(","), "rebound.example.com")


def test_services_and_selectors_meet() -> None:
    labels = {
        (m["kind"], m["metadata"]["name"]): m["spec"]["template"]["metadata"]["labels"]
        for m in MANIFESTS
        if m["kind"] in ("Deployment", "StatefulSet")
    }
    for m in MANIFESTS:
        if m["kind"] in ("Deployment", "StatefulSet"):
            assert (
                m["spec"]["selector"]["matchLabels"] == m["spec"]["template"]["metadata"]["labels"]
            )
    for service in of_kind("Service").values():
        assert service["spec"]["selector"] in labels.values()


def test_nobody_is_root() -> None:
    for m in MANIFESTS:
        if m["kind"] in ("Deployment", "StatefulSet"):
            assert m["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True


def test_the_bucket_script_in_the_manifest_is_the_file() -> None:
    script = (FOLDER / "make_bucket.py").read_text(encoding="utf-8")
    assert of_kind("ConfigMap")["mlflow-make-bucket"]["data"]["make_bucket.py"] == script
    compile(script, "make_bucket.py", "exec")


def test_sweeps_in_the_cluster_find_the_server() -> None:
    tracking = of_kind("ConfigMap")["orchestrator-tracking"]["data"]["uri"]
    port = of_kind("Service")["mlflow"]["spec"]["ports"][0]["port"]
    assert tracking == f"http://mlflow:{port}"
