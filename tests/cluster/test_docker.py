"""The Dockerfile: what it copies exists and enters the build, and nobody is root."""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatch

import pytest

from tests.cluster.files import CLUSTER, ROOT, platform_ray_settings

TEXT = (CLUSTER / "docker/Dockerfile").read_text(encoding="utf-8")
IGNORE = (CLUSTER / "docker/Dockerfile.dockerignore").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) in order, continued lines joined, comments left out."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    split = (line.split(None, 1) for line in joined.splitlines() if line.strip())
    return [(word.upper(), rest) for word, rest in split]


def stages() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for word, rest in instructions():
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()  # type: ignore[union-attr]
            found[name] = list(found.get(base, []))
        elif name:
            found[name].append((word, rest))
    return found


def copied() -> list[str]:
    sources = []
    for word, rest in instructions():
        if word == "COPY":
            words = [part for part in shlex.split(rest) if not part.startswith("--")]
            sources += words[:-1]
    return sources


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_exists_and_enters_the_build(source: str) -> None:
    assert (ROOT / source).exists()
    allowed = [line[1:] for line in IGNORE.splitlines() if line.startswith("!")]
    assert any(source == path or source.startswith(f"{path}/") for path in allowed)


def test_nothing_enters_the_build_unasked() -> None:
    lines = [line for line in IGNORE.splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    for path in (line[1:] for line in lines if line.startswith("!")):
        assert (ROOT / path).exists(), path
        assert not any(fnmatch(path, pattern) for pattern in ("*.env", "*secret*", "results*"))


@pytest.mark.parametrize("stage", ["cpu", "gpu", "mlflow"])
def test_the_last_user_is_not_root(stage: str) -> None:
    users = [rest for word, rest in stages()[stage] if word == "USER"]
    assert users and users[-1] == "orchestrator"


@pytest.mark.parametrize("stage", ["cpu", "gpu"])
def test_the_environment_is_made_as_everywhere(stage: str) -> None:
    runs = " ".join(rest for word, rest in stages()[stage] if word == "RUN")
    assert f"python3 scripts/setup.py --extra {stage}" in runs


@pytest.mark.parametrize("stage", ["cpu", "gpu"])
def test_the_source_comes_after_what_it_does_not_change(stage: str) -> None:
    """So that an edit of the source does not install gigabytes again."""
    steps = stages()[stage]
    setup = next(i for i, (_, rest) in enumerate(steps) if "scripts/setup.py --extra" in rest)
    source = next(
        i for i, (_, rest) in enumerate(steps) if rest.endswith("orchestrator orchestrator")
    )
    assert setup < source


def test_a_ray_of_the_image_has_the_platforms_settings() -> None:
    environment = dict(
        word.split("=", 1)
        for word_kind, rest in stages()["gpu"]
        if word_kind == "ENV"
        for word in shlex.split(rest)
    )
    expected = platform_ray_settings()
    assert {name: environment.get(name) for name in expected} == expected


def test_the_base_is_the_python_that_was_tested_and_names_no_registry() -> None:
    assert re.search(r"^ARG BASE=python:3\.11-", TEXT, flags=re.MULTILINE)
    assert not re.search(
        r"\b[\w-]+\.(io|com|org|dev)/", "\n".join(f"{w} {r}" for w, r in instructions())
    )


def test_the_project_asks_for_a_readme_and_a_license_that_are_copied() -> None:
    assert {"pyproject.toml", "README.md", "requirements"} <= set(copied())
