"""The simulated machine room: one virtual clock and the engines that stand in it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field

from orchestrator.adapters.simulated.configuration import EngineConfiguration, configure
from orchestrator.adapters.simulated.engine import SimulatedEngine, seeded
from orchestrator.plan.deployment import Deployment, Speculation
from orchestrator.ports import Endpoint

EPOCH_UNIX_S = 1_700_000_000.0
"""Wall-clock reading of virtual second 0: fixed, so that records are equal from run to run."""

RECIPE_HEADER = "x-simulated-deployment"
SCHEME = "simulated://"


@dataclass
class Room:
    """One running simulated deployment."""

    name: str
    deployment: Deployment
    configuration: EngineConfiguration
    engine: SimulatedEngine
    start_index: int
    started_at_s: float
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def replica_id(self) -> str:
        """Names this life of the engine, so that a restart is noticed."""
        return f"{self.name}:{self.started_at_s:.6f}:{self.start_index}"


class SimulatedWorld:
    """Engines by name on one clock that only goes forward.

    The clock is shared, as on a real machine: while one arm runs, the other grows older. Runs are
    repeatable when blocks are run one at a time; in parallel only what drifts with time differs.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.now_s = 0.0
        self._rooms: dict[str, Room] = {}
        self._starts: dict[str, int] = {}
        self._lock = threading.Lock()

    def open(self, deployment: Deployment, name: str, start_index: int | None = None) -> Room:
        """Starts an engine. Its noise depends on the deployment, this start's number, the seed.

        Raises: SpecError for parameters that cannot be.
        """
        configuration = configure(deployment)
        key = deployment.key
        with self._lock:
            index = self._starts.get(key, 0) if start_index is None else start_index
            self._starts[key] = index + 1
            configuration = configuration.in_life(index)
            self.now_s += configuration.model.start_s + configuration.faults.slow_start_s
            rng = seeded(configuration, f"{self.seed} {key} {index}")
            engine = SimulatedEngine(configuration, rng, at_s=self.now_s)
            room = Room(name, deployment, configuration, engine, index, self.now_s)
            self._rooms[name] = room
        return room

    def shut(self, name: str) -> None:
        with self._lock:
            self._rooms.pop(name, None)

    def find(self, name: str) -> Room | None:
        return self._rooms.get(name)

    def at(self, endpoint: Endpoint) -> Room | None:
        """The engine behind an endpoint; in another process it is built anew from its recipe."""
        room = self._rooms.get(endpoint.name)
        recipe = endpoint.headers.get(RECIPE_HEADER)
        if room is not None or recipe is None or not endpoint.base_url.startswith(SCHEME):
            return room
        deployment, index = _from_recipe(recipe)
        return self.open(deployment, endpoint.name, index)

    def endpoint(self, room: Room) -> Endpoint:
        return Endpoint(
            name=room.name,
            base_url=f"{SCHEME}{room.name}",
            model=room.deployment.target,
            headers={RECIPE_HEADER: _recipe(room)},
            simulated=True,
        )

    def enter(self, engine: SimulatedEngine) -> float:
        """Brings an engine's clock to the world's; returns the moment."""
        with self._lock:
            engine.idle_until(self.now_s)
            return engine.now_s

    def leave(self, engine: SimulatedEngine) -> None:
        with self._lock:
            self.now_s = max(self.now_s, engine.now_s)

    @property
    def unix_s(self) -> float:
        return EPOCH_UNIX_S + self.now_s


def _recipe(room: Room) -> str:
    return json.dumps({"deployment": room.deployment.as_dict(), "start": room.start_index})


def _from_recipe(text: str) -> tuple[Deployment, int]:
    recipe = json.loads(text)
    raw = recipe["deployment"]
    speculation = None if raw["speculation"] is None else Speculation(**raw["speculation"])
    deployment = Deployment(raw["target"], raw["engine"], speculation, raw["replica_of"])
    return deployment, int(recipe["start"])
