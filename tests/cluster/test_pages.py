"""Each target has a page from nothing to a sweep and back, and what a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.cluster.files import CLUSTER, ROOT

FOLDERS = sorted(folder for folder in CLUSTER.iterdir() if folder.is_dir())
PAGES = [CLUSTER / "README.md", *(folder / "README.md" for folder in FOLDERS)]
YAML = sorted(f for pattern in ("*.yaml", "*.yml") for f in CLUSTER.rglob(pattern))


def test_these_are_the_targets() -> None:
    names = {folder.name for folder in FOLDERS}
    assert names == {"docker", "kubernetes", "mlflow", "monitoring", "ray", "slurm"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_has_a_page_there_and_back(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^## From nothing to ", text, flags=re.MULTILINE)
    assert re.search(r"^## Back to nothing$", text, flags=re.MULTILINE)
    assert f"{folder.name}/README.md" in (CLUSTER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_what_it_links_to_and_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    named = re.findall(r"(?<![/\w])(?:cluster|experiments|serve_configs)/[\w./-]+\.\w+", text)
    for path in named:
        if path != "cluster/mlflow/.env":  # which the page says to make
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("file", YAML, ids=lambda file: str(file.relative_to(CLUSTER)))
def test_its_yaml_loads_safely(file: Path) -> None:
    documents = [d for d in yaml.safe_load_all(file.read_text(encoding="utf-8")) if d is not None]
    assert documents
    assert all(isinstance(document, dict) for document in documents)
