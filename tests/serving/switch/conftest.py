"""The engines and the switch that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.serving.switch.room import Engine, Switch, engines, switch


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Short: the path of a socket may have 107 bytes."""
    with TemporaryDirectory(prefix="switch-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def arms(folder: Path) -> Iterator[dict[str, Engine]]:
    with engines(folder) as both:
        yield both


@pytest.fixture(scope="module")
def front(arms: dict[str, Engine], folder: Path) -> Iterator[Switch]:
    with switch(folder) as one:
        yield one
