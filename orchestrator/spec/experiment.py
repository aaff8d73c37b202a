"""The experiment file."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from orchestrator.spec.attach import Attach
from orchestrator.spec.engine import SIMULATED, Engine
from orchestrator.spec.goals import Cost, Scenario, Slo
from orchestrator.spec.load import ClosedLoad, Load, OpenLoad
from orchestrator.spec.measure import Measure
from orchestrator.spec.placement import Placement
from orchestrator.spec.sampling import RequestSampling
from orchestrator.spec.search import OF_THE_SLO, Search, Suite
from orchestrator.spec.section import Name, Section, Text, Whole, broken, defaults
from orchestrator.spec.soak import Soak
from orchestrator.spec.sweep import Sweep
from orchestrator.spec.tracking import Tracking
from orchestrator.spec.workload import Workload

REQUESTS_PER_BLOCK_CLOSED = 1
REQUESTS_PER_BLOCK_OPEN = 32


def _named_once(workloads: tuple[Workload, ...]) -> tuple[Workload, ...]:
    seen: set[str] = set()
    for index, workload in enumerate(workloads):
        if workload.name in seen:
            raise broken(
                "must differ from the other workloads' names",
                value=f"'{workload.name}'",
                key=(index, "name"),
            )
        seen.add(workload.name)
    return workloads


class Experiment(Section):
    """One question, as a grid of paired comparisons."""

    name: Name
    description: str = Field(default="", strict=True)
    target: Text | None = Field(
        default=None, description="catalogue name, Hugging Face id, or path"
    )
    engine: Engine = Field(default_factory=dict)
    attach: Attach | None = None
    sweep: Sweep
    workloads: Annotated[tuple[Workload, ...], AfterValidator(_named_once)] = Field(min_length=1)
    load: Load = defaults()
    measure: Measure = defaults()
    sampling: RequestSampling = defaults()
    slo: Slo = Field(default_factory=dict)
    search: Search = defaults()
    suites: tuple[Suite, ...] = Field(default=("performance",), min_length=1)
    soak: Soak = defaults()
    scenarios: tuple[Scenario, ...] = ()
    cost: Cost | None = None
    tracking: Tracking = defaults()
    placement: Placement = defaults()
    seed: Whole = 0

    @property
    def simulated(self) -> bool:
        """True when the engine is arithmetic: nothing it yields may be called measured."""
        return SIMULATED in self.engine

    @property
    def requests_per_block(self) -> int:
        """Per request in flight (closed load) or in all (open load)."""
        if self.measure.requests_per_block is not None:
            return self.measure.requests_per_block
        closed = isinstance(self.load, ClosedLoad)
        return REQUESTS_PER_BLOCK_CLOSED if closed else REQUESTS_PER_BLOCK_OPEN

    @model_validator(mode="after")
    def _target_or_attach(self) -> Experiment:
        if self.attach is None and self.target is None:
            raise broken(
                "is required",
                hint="a model, or attach: with the addresses of two running servers",
                key=("target",),
                involves=[("attach",)],
            )
        if self.attach is not None and self.engine:
            raise broken(
                "must not be given together with attach: those servers already run",
                key=("engine",),
                involves=[("attach",)],
            )
        return self

    @model_validator(mode="after")
    def _attached_server_is_one_configuration(self) -> Experiment:
        if self.attach is None:
            return self
        points = [point for entry in self.sweep.speculation for point in entry.points()]
        if len(points) > 1:
            raise broken(
                "must describe exactly one configuration with attach (what that server runs)",
                value=f"{len(points)} configurations",
                key=("sweep", "speculation"),
                involves=[("attach",)],
            )
        return self

    @model_validator(mode="after")
    def _batch_size_is_the_cap(self) -> Experiment:
        """Where the load says how much is in flight, batch_size can only be the engine's cap."""
        sizes = self.sweep.batch_size
        involves: list[tuple[str | int, ...]] = [("load",), ("engine", "max_num_seqs")]
        if isinstance(self.load, OpenLoad):
            if sizes is None and "max_num_seqs" not in self.engine:
                raise broken(
                    "is required with load.mode: open",
                    hint="one value: the most requests the engine decodes together",
                    key=("sweep", "batch_size"),
                    involves=involves,
                )
            given = "load.mode: open"
        elif self.load.concurrency is not None:
            given = "load.concurrency"
        else:
            return self
        if sizes is not None and len(sizes) > 1:
            raise broken(
                f"must be one value together with {given}: it is the engine's cap then",
                value=list(sizes),
                hint=f"keep the largest, {max(sizes)}",
                key=("sweep", "batch_size"),
                involves=involves,
            )
        return self

    @model_validator(mode="after")
    def _search_has_what_it_needs(self) -> Experiment:
        of_the_slo = [name for name in self.objectives if name in OF_THE_SLO]
        if of_the_slo and not self.slo:
            raise broken(
                "needs service objectives to be measured against",
                value=f"'{of_the_slo[0]}'",
                hint="give slo, for example slo: {ttft_p99_s: 0.5}",
                key=("search", "objective"),
                involves=[("slo",), ("search", "preset")],
            )
        if self.search.algorithm != "grid" and self.load.refine:
            raise broken(
                f"acts only with search.algorithm: grid; {self.search.algorithm} leaves rungs of "
                "the ladders out",
                value=self.load.refine,
                hint="take refine away, or search the whole grid",
                key=("load", "refine"),
                involves=[("search", "algorithm"), ("search", "preset")],
            )
        if self.search.scheduler != "none" and self.measure.looks == "once":
            raise broken(
                "must be every together with a scheduler: it looks after every pair",
                value="'once'",
                hint="search.scheduler: none, or measure.looks: every",
                key=("measure", "looks"),
                involves=[("search", "scheduler"), ("search", "preset")],
            )
        return self

    @model_validator(mode="after")
    def _soak_mixes_workloads_of_this_file(self) -> Experiment:
        known = [workload.name for workload in self.workloads]
        for name in self.soak.mix:
            if name not in known:
                raise broken(
                    f"must name workloads of this file ({', '.join(known)})",
                    value=f"'{name}'",
                    key=("soak", "mix", name),
                    involves=[("workloads",)],
                )
        return self

    @property
    def objectives(self) -> tuple[str, ...]:
        """What the search looks for; the metric of the verdict where the file does not say."""
        return self.search.objective or (self.measure.metric,)

    def as_plain(self) -> dict[str, Any]:
        """The resolved experiment as plain JSON, for the records; a password in a URI is masked."""
        plain = self.model_dump(mode="json")
        uri = self.tracking.uri
        if uri is not None:
            plain["tracking"]["uri"] = re.sub(r"//[^/@]*@", "//***@", uri)
        return plain
