"""Paired experiments: whether, where and when speculative decoding pays.

    import orchestrator
    sweep = orchestrator.results("quickstart")
    sweep.cells, sweep.pairs, sweep.requests        # pandas frames, docs/results-api.md

Importing this package imports nothing else; pandas comes with the first call.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.decide.frames import SweepFrames

__all__ = ["results"]


def results(sweep: str | Path, *, folder: str | Path = "results") -> SweepFrames:
    """A sweep's results as frames. `sweep` is its name within `folder`, or its own folder.

    Raises: errors.StoreError when there is no such sweep, or its records are damaged.
    """
    from orchestrator.decide.frames import read_frames
    from orchestrator.store import SweepFolder

    own = Path(sweep)
    path = own if (own / "sweep.json").exists() else Path(folder) / sweep
    return read_frames(SweepFolder(path.resolve()))
