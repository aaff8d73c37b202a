"""A trial: all pairs of one deployment pair at one sweep point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from orchestrator.plan.deployment import DeploymentPair, deployment_from
from orchestrator.plan.identity import content_hash
from orchestrator.records import SCHEMA_VERSION

TrialKind = Literal["comparison", "aa_control", "confirmation", "what_if"]
"""A what-if is no comparison: its draft does not exist, so it is never chosen or confirmed."""


@dataclass(frozen=True)
class LoadPoint:
    """The load offered at one point of the ladder.

    closed: `concurrency` requests in flight, always (queueing shows when it passes the engine's
    cap). open: `rate_rps` requests a second, sent on time whatever the server does.
    """

    mode: Literal["closed", "open"]
    concurrency: int | None = None
    rate_rps: float | None = None
    arrivals: Literal["constant", "poisson", "gamma", "trace"] = "poisson"
    burstiness: float = 1.0
    """Gamma shape: 1 is Poisson, below 1 is burstier."""
    trace_hash: str | None = None
    """Content of the recorded arrivals, with arrivals="trace"."""
    time_scale: float = 1.0
    """The trace's gaps are multiplied by this."""

    def label(self) -> str:
        if self.mode == "closed":
            return f"{self.concurrency} in flight"
        if self.rate_rps is None:
            return f"trace x{self.time_scale:g}"
        return f"{self.rate_rps:g} rps"


@dataclass(frozen=True)
class Sampling:
    """Sampling fields sent with every request of a trial; None = the server's default."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seeded: bool = True
    """Send a `seed` of its own with every request (the same one to both arms)."""


@dataclass(frozen=True)
class WorkloadRef:
    """Which prompts, and how they are asked; `prompts_hash` fixes the content."""

    name: str
    prompts: str
    prompts_hash: str
    output_tokens: int
    fixed_length: bool = True
    """`ignore_eos`: every answer has exactly `output_tokens`, in both arms."""
    endpoint: Literal["chat", "completion"] = "chat"
    input_tokens: tuple[int | None, int | None] = (None, None)
    history: Literal["own", "reference", "first_turn"] = "first_turn"
    allow_reuse: bool = False


@dataclass(frozen=True)
class Protocol:
    """How a trial is measured. Part of its id: another protocol is another measurement."""

    pairs_min: int = 6
    pairs_max: int = 24
    requests_per_block: int = 1
    """Per request in flight (closed) or in all (open)."""
    warmup_requests: int = 1
    """Per request in flight, on each arm, before the first pair."""
    confidence: float = 0.95
    margin: float = 0.03
    metric: str = "speedup_throughput"
    """The headline: the metric whose verdict stops the trial."""
    trial_seconds: float | None = None
    """After so long in measured blocks no further pair is begun, once pairs_min are there."""
    looks: Literal["every", "once"] = "every"
    """Whether every pair may end the trial, or the verdict is asked for at the end alone."""
    placement: Literal["separate", "in_turn", "shared"] = "separate"
    """Whether the arms have devices of their own, take turns on one, or share it."""
    block_requests_min: int = 1
    """Closed load: a block has at least so many requests, however few are in flight."""


@dataclass(frozen=True)
class Cell:
    """One point of the grid."""

    method: str
    draft: str | None
    speculation_length: int
    batch_size: int
    sampling: Sampling
    workload: WorkloadRef
    load: LoadPoint

    def label(self) -> str:
        draft = f"({self.draft})" if self.draft else ""
        of_its_own = self.load.mode == "open" or self.load.concurrency != self.batch_size
        load = f" · {self.load.label()}" if of_its_own else ""
        return (
            f"{self.method}{draft} K={self.speculation_length} · {self.workload.name} · "
            f"batch {self.batch_size}{load} · T={self.sampling.temperature:g}"
        )


@dataclass(frozen=True)
class Trial:
    """One Ray Tune trial, one MLflow run."""

    kind: TrialKind
    pair: DeploymentPair
    cell: Cell
    protocol: Protocol
    seed: int

    @cached_property
    def id(self) -> str:
        return content_hash(self.identity())

    @cached_property
    def ladder(self) -> str:
        """The same for all rungs of one ladder: the identity without how much is offered.

        Left out: the seed, the batch size, and of the load its concurrency, rate and time scale.
        The kind of load stays (mode, arrivals, burstiness, trace): Poisson and bursty arrivals are
        two ladders; so does the engine's cap, which is the deployments'.
        """
        identity: dict[str, Any] = self.identity()
        del identity["seed"]
        cell = dict(identity["cell"])
        del cell["batch_size"]
        load = dict(cell["load"])
        for how_much in ("concurrency", "rate_rps", "time_scale"):
            del load[how_much]
        # A trace that is scaled to a rate and one that is scaled by hand are different ladders.
        load["by"] = "rate" if self.cell.load.rate_rps is not None else "scale"
        return content_hash({**identity, "cell": {**cell, "load": load}})

    def identity(self) -> dict[str, Any]:
        """Everything that determines the result, and nothing else."""
        return {
            "schema": SCHEMA_VERSION,
            "kind": self.kind,
            "baseline": self.pair.baseline.as_dict(),
            "speculative": self.pair.speculative.as_dict(),
            "cell": asdict(self.cell),
            "protocol": asdict(self.protocol),
            "seed": self.seed,
        }

    def confirmation(self) -> Trial:
        """The same cell, to be measured once more."""
        return replace(self, kind="confirmation")

    def label(self) -> str:
        prefixes = {"comparison": "", "aa_control": "A/A · ", "confirmation": "confirm · ",
                    "what_if": "what-if · "}  # fmt: skip
        return prefixes[self.kind] + self.cell.label()


def trial_from(identity: Mapping[str, Any]) -> Trial:
    """The trial that `Trial.identity` describes; its id is the same again.

    Raises: KeyError, TypeError when a part is missing or unknown (records of another version).
    """
    cell = dict(identity["cell"])
    workload = dict(cell["workload"])
    workload["input_tokens"] = tuple(workload["input_tokens"])
    return Trial(
        kind=identity["kind"],
        pair=DeploymentPair(
            deployment_from(identity["baseline"]), deployment_from(identity["speculative"])
        ),
        cell=Cell(
            **{
                **cell,
                "sampling": Sampling(**cell["sampling"]),
                "workload": WorkloadRef(**workload),
                "load": LoadPoint(**cell["load"]),
            }
        ),
        protocol=Protocol(**identity["protocol"]),
        seed=identity["seed"],
    )
