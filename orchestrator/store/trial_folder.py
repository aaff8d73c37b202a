"""One trial on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.plan.trial import Trial
from orchestrator.records import BlockRecord, EngineFacts, FailureClass, Outcome
from orchestrator.store.atomic import read_json, write_atomically, write_json
from orchestrator.store.block_file import block_stem, read_block, write_block

REUSED = "reused.json"
"""Where a trial's records were taken from, when another sweep measured it."""
_DERIVED = "derived.json"
"""A first line that names what it was derived from, then JSON."""


@dataclass(frozen=True)
class TrialFolder:
    """Reads and writes `results/<sweep>/<trial>/`. Picklable: it holds a path only."""

    path: Path

    @property
    def blocks_path(self) -> Path:
        return self.path / "blocks"

    def begin(self, trial: Trial) -> None:
        """For whoever opens the folder: the sweep's list of trials says the same."""
        write_json(
            self.path / "trial.json",
            {"id": trial.id, "label": trial.label(), "identity": trial.identity()},
            durable=False,
        )

    def save_environment(self, environment: Mapping[str, Any]) -> None:
        write_json(self.path / "environment.json", dict(environment))

    def environment(self) -> dict[str, Any] | None:
        path = self.path / "environment.json"
        return dict(read_json(path)) if path.exists() else None

    def save_engines(self, engines: Mapping[str, EngineFacts]) -> None:
        write_json(
            self.path / "engines.json", {arm: asdict(facts) for arm, facts in engines.items()}
        )

    def engines(self) -> dict[str, EngineFacts]:
        path = self.path / "engines.json"
        if not path.exists():
            return {}
        found = {}
        for arm, facts in read_json(path).items():
            facts["pids"] = tuple(facts["pids"])
            found[arm] = EngineFacts(**facts)
        return found

    def save_block(self, block: BlockRecord) -> None:
        write_block(self.blocks_path, block)

    def warmup(self) -> tuple[BlockRecord, ...]:
        return tuple(read_block(path) for path in sorted(self.blocks_path.glob("warmup-?.json")))

    def pairs(self) -> tuple[tuple[BlockRecord, BlockRecord], ...]:
        """Complete pairs (baseline, speculative) in order. A block whose partner is missing waits
        on disk but belongs to no pair: its partner would not have run beside it."""
        found: list[tuple[BlockRecord, BlockRecord]] = []
        index = 0
        while True:
            paths = [self.blocks_path / f"{index:03d}-{letter}.json" for letter in "AB"]
            if not all(path.exists() for path in paths):
                return tuple(found)
            found.append((read_block(paths[0]), read_block(paths[1])))
            index += 1

    def discard_unpaired(self) -> int:
        """Rename blocks that a kill left without their partner; returns how many there were."""
        complete = len(self.pairs())
        discarded = 0
        for path in sorted(self.blocks_path.glob("[0-9]*-?.json")):
            if int(path.stem.split("-")[0]) >= complete:
                number = len(list(self.blocks_path.glob(f"unpaired-*-{path.stem}.json")))
                for file in (path.with_suffix(".parquet"), path):
                    file.replace(file.with_name(f"unpaired-{number}-{file.name}"))
                discarded += 1
        return discarded

    def reused(self) -> dict[str, Any] | None:
        """{sweep, sweep_id, fingerprint} of the sweep that measured it; None: this one did."""
        path = self.path / REUSED
        return dict(read_json(path)) if path.exists() else None

    def save_outcome(self, outcome: Outcome) -> None:
        write_json(self.path / "outcome.json", asdict(outcome))

    def outcome(self) -> Outcome | None:
        """None while the trial has not ended."""
        path = self.path / "outcome.json"
        if not path.exists():
            return None
        facts = read_json(path)
        if facts["failure"] is not None:
            facts["failure"] = FailureClass(facts["failure"])
        return Outcome(**facts)

    def state(self) -> str | None:
        """Names the records as they are now: changes when one does. None while it has not ended."""
        if not (self.path / "outcome.json").exists():
            return None
        found = []
        for folder in (self.path, self.blocks_path):
            if folder.is_dir():
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name.endswith((".json", ".parquet")) and entry.name != _DERIVED:
                            seen = entry.stat()
                            found.append(f"{entry.name} {seen.st_size} {seen.st_mtime_ns}")
        return "\n".join(sorted(found))

    def derived(self, key: str) -> str | None:
        """What `save_derived` kept under this very key, or None."""
        try:
            kept = (self.path / _DERIVED).read_text(encoding="utf-8")
        except OSError:
            return None
        found, _, text = kept.partition("\n")
        return text if found == key else None

    def save_derived(self, key: str, text: str) -> None:
        """Keep what was derived from the records named by `key`. Raises: StoreError."""
        kept = f"{key}\n{text}"
        write_atomically(
            self.path / _DERIVED,
            lambda temporary: temporary.write_text(kept, encoding="utf-8"),
            durable=False,
        )

    def files(self) -> list[Path]:
        """Everything in the folder, for artifacts."""
        return sorted(path for path in self.path.rglob("*") if path.is_file())


__all__ = ["TrialFolder", "block_stem"]
