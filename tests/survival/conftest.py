"""One Ray for all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.survival import room


@pytest.fixture(scope="package")
def ray_address() -> Iterator[str]:
    """A local Ray that stays; sweeps join it, as they would a cluster."""
    import ray
    from ray import serve

    from orchestrator.adapters.ray_local import ensure_ray

    path = os.pathsep.join(filter(None, (str(room.ROOT), os.environ.get("PYTHONPATH"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        connection = ensure_ray()
        try:
            yield str(ray.get_runtime_context().gcs_address)
        finally:
            serve.shutdown()
            connection.close()
