"""KubeRay's manifests: what the operator's schemas ask, and what a sweep asks."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from orchestrator.spec.read import read_experiment
from tests.cluster.crd_schema import json_schema_of
from tests.cluster.files import CLUSTER, KUBERNETES, ROOT, document, documents, environment_of

RAY_FILES = {
    "raycluster.yaml": ("rayclusters", ()),
    "rayjob-sweep.yaml": ("rayjobs", ("rayClusterSpec",)),
    "rayservice-side-by-side.yaml": ("rayservices", ("rayClusterConfig",)),
}
SHARED_DATA = Path(os.environ.get("ORCHESTRATOR_SHARED_DATA", ROOT.parent / "shared/data"))


def cluster_of(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = document(KUBERNETES / name)["spec"]
    for step in RAY_FILES[name][1]:
        spec = spec[step]
    return spec


def pods_of(name: str) -> list[dict[str, Any]]:
    cluster = cluster_of(name)
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


@pytest.fixture(params=RAY_FILES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@functools.cache
def operators_schema(plural: str) -> dict[str, Any]:
    crd = SHARED_DATA / "kuberay" / f"crd_{plural}.yaml"
    if not crd.exists():
        pytest.skip(
            f"KubeRay's schema is not at {crd}: get the CRDs (kubectl get crd -o yaml, or the "
            "operator's chart) and name their folder's parent in ORCHESTRATOR_SHARED_DATA"
        )
    # A megabyte each: many seconds without the parser in C.
    return json_schema_of(yaml.load(crd.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))


def faults(schema: dict[str, Any], value: object) -> list[str]:
    found = jsonschema.Draft7Validator(schema).iter_errors(value)
    return [f"{fault.json_path}: {fault.message}" for fault in found]


def test_it_fits_the_operators_schema(name: str) -> None:
    assert faults(operators_schema(RAY_FILES[name][0]), document(KUBERNETES / name)) == []


def test_other_pods_fit_the_schema_of_pods_within_it() -> None:
    """The operator's schema spells out Kubernetes' own pods: MLflow's and the reader fit it too."""
    cluster = operators_schema("rayclusters")["properties"]["spec"]["properties"]
    template = cluster["headGroupSpec"]["properties"]["template"]
    pods = {"reader": {"spec": document(KUBERNETES / "reader.yaml")["spec"]}}
    for manifest in documents(CLUSTER / "mlflow/kubernetes.yaml"):
        if "template" in manifest.get("spec", {}):
            pod = manifest["spec"]["template"]
            pods[manifest["metadata"]["name"]] = {"spec": pod["spec"]}
    assert set(pods) == {"reader", "mlflow", "mlflow-postgres", "mlflow-artifacts"}
    assert {pod: faults(template, content) for pod, content in pods.items()} == {
        pod: [] for pod in pods
    }


def test_the_schema_would_find_a_wrong_field(name: str) -> None:
    manifest = document(KUBERNETES / name)
    manifest["spec"]["backOffLimit"] = 3
    assert faults(operators_schema(RAY_FILES[name][0]), manifest) != []


# What follows always runs: it asks for what a sweep needs, which no schema knows.


def test_every_pod_runs_the_same_image_as_an_ordinary_user(name: str) -> None:
    images = set()
    for pod in pods_of(name):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 1000
        assert pod["automountServiceAccountToken"] is False
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            images.add(container["image"])
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert len(images) == 1


def test_ray_is_the_first_container_and_the_cluster_asks_for_a_token(name: str) -> None:
    cluster = cluster_of(name)
    assert cluster["authOptions"] == {"mode": "token"}
    assert [pod["containers"][0]["name"] for pod in pods_of(name)] == ["ray-head", "ray-worker"]


def test_the_ray_version_is_that_of_the_image(name: str) -> None:
    constraints = (ROOT / "requirements/constraints.txt").read_text(encoding="utf-8")
    (tested,) = re.findall(r"^ray==(\S+)$", constraints, flags=re.MULTILINE)
    assert cluster_of(name)["rayVersion"] == tested


def test_the_head_has_no_gpu_and_the_workers_are_of_one_kind(name: str) -> None:
    head, *workers = pods_of(name)
    assert "nvidia.com/gpu" not in head["containers"][0]["resources"]["limits"]
    assert len(workers) == 1
    assert workers[0]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert cluster_of(name)["workerGroupSpecs"][0]["replicas"] % 2 == 0  # pairs


def test_every_pod_sees_the_shared_folder_with_models_on_it(name: str) -> None:
    for pod in pods_of(name):
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert volumes["shared"]["persistentVolumeClaim"]["claimName"] == "orchestrator-shared"
        container = pod["containers"][0]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts["shared"] == "/shared"
        assert mounts["shm"] == "/dev/shm"
        assert set(mounts) <= set(volumes)
        environment = environment_of(container)
        assert environment["ORCHESTRATOR_CACHE"]["value"].startswith("/shared/")
        assert environment["HF_HOME"]["value"].startswith("/shared/")
        assert "secretKeyRef" in environment["HF_TOKEN"]["valueFrom"]


def test_the_claim_is_written_by_many_nodes_at_once() -> None:
    claim = document(KUBERNETES / "shared.yaml")
    assert claim["metadata"]["name"] == "orchestrator-shared"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_job_resumes_from_the_shared_folder_on_a_new_cluster() -> None:
    spec = document(KUBERNETES / "rayjob-sweep.yaml")["spec"]
    wrapper, *command = spec["entrypoint"].split()
    assert wrapper == "sweep-job"
    assert command == [
        "python", "-m", "orchestrator", "sweep", "/experiments/experiment.yaml",
        "--results", "/shared/results", "--address", "auto",
    ]  # fmt: skip
    assert spec["backoffLimit"] >= 1
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["activeDeadlineSeconds"] > 0


def test_the_job_finds_the_experiment_that_is_mounted(tmp_path: Path) -> None:
    found = document(KUBERNETES / "experiment.yaml")
    head = pods_of("rayjob-sweep.yaml")[0]
    (volume,) = (v for v in head["volumes"] if v["name"] == "experiment")
    assert volume["configMap"]["name"] == found["metadata"]["name"]
    mounts = {m["name"]: m["mountPath"] for m in head["containers"][0]["volumeMounts"]}
    assert mounts["experiment"] == "/experiments"
    file = tmp_path / "experiment.yaml"
    file.write_text(found["data"]["experiment.yaml"], encoding="utf-8")
    experiment = read_experiment(file)
    assert experiment.placement.gpus_per_replica == 1


def test_the_service_serves_what_side_by_side_serves() -> None:
    spec = document(KUBERNETES / "rayservice-side-by-side.yaml")["spec"]
    here = yaml.safe_load(spec["serveConfigV2"])
    there = document(ROOT / "serve_configs/side_by_side.yaml")
    assert here["applications"] == there["applications"]
    assert here["http_options"] == {**there["http_options"], "host": "0.0.0.0"}
    assert here["proxy_location"] == "EveryNode"  # a pod without a proxy never becomes ready


def test_the_service_prepares_the_model_it_serves() -> None:
    spec = document(KUBERNETES / "rayservice-side-by-side.yaml")["spec"]
    targets = {
        application["args"]["target"]
        for application in yaml.safe_load(spec["serveConfigV2"])["applications"]
    }
    (prepare,) = pods_of("rayservice-side-by-side.yaml")[0]["initContainers"]
    assert prepare["command"][-3:-1] == ["models", "prepare"]
    assert {prepare["command"][-1]} == targets


def test_the_three_clusters_are_alike() -> None:
    job, cluster = cluster_of("rayjob-sweep.yaml"), cluster_of("raycluster.yaml")
    assert job == cluster
    head, worker = pods_of("rayservice-side-by-side.yaml")
    assert worker == pods_of("raycluster.yaml")[1]
    assert environment_of(head["containers"][0]) == environment_of(
        pods_of("raycluster.yaml")[0]["containers"][0]
    )


def test_the_reader_sees_the_same_claim() -> None:
    pod = document(KUBERNETES / "reader.yaml")["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "orchestrator-shared"
    assert pod["securityContext"]["runAsNonRoot"] is True
