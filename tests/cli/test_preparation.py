from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orchestrator.adapters.local import host_facts
from orchestrator.cli.preparation import prepare
from orchestrator.errors import WorkloadError
from orchestrator.plan.facts import ClusterFacts

FILE = {
    "name": "x",
    "target": "smollm2-135m-instruct",
    "engine": {"dtype": "native", "max_model_len": 1024},
    "sweep": {
        "speculation": [{"method": "ngram", "speculation_length": 2}],
        "batch_size": [1],
    },
    "workloads": [{"name": "chat", "prompts": "bundled:chat", "output_tokens": 8}],
    "measure": {"pairs": {"min": 2, "max": 3}},
    "placement": {"strategy": "shared", "gpus_per_replica": 0},
}


@pytest.mark.parametrize(
    ("gpus", "instructions", "dtype"),
    [(0, ("avx512_bf16",), "bfloat16"), (0, (), "float32"), (2, (), "auto")],
)
def test_a_native_dtype_is_what_is_fast_where_engines_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpus: float,
    instructions: tuple[str, ...],
    dtype: str,
) -> None:
    monkeypatch.setattr(host_facts, "native_bfloat16", lambda: instructions)
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(FILE))
    prepared = prepare(file, offline=True, cluster=ClusterFacts(gpus=gpus, cpus=2.0))
    assert prepared.experiment.engine["dtype"] == dtype
    for trial in prepared.plan.trials:
        assert trial.pair.baseline.engine["dtype"] == dtype
    assert prepared.experiment.as_plain()["engine"]["dtype"] == dtype


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "owner/model",
            ("owner/model is not in the Hugging Face cache", "hf download owner/model"),
        ),
        ("smollm2-135m-instruct", ("models prepare smollm2-135m-instruct",)),
    ],
)
def test_prompts_that_cannot_be_counted_name_the_model_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: tuple[str, ...]
) -> None:
    for cache in ("ORCHESTRATOR_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(cache, str(tmp_path / "empty"))
    (workload,) = FILE["workloads"]  # type: ignore[misc]
    counted = workload | {"input_tokens": {"max": 48, "by": "cut"}}  # type: ignore[operator]
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(FILE | {"target": target, "workloads": [counted]}))
    with pytest.raises(WorkloadError) as caught:
        prepare(file, offline=True, cluster=ClusterFacts(gpus=0, cpus=2.0))
    for text in said:
        assert text in str(caught.value)
