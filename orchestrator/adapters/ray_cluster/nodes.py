"""The nodes of a Ray cluster, and our agents on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from orchestrator.adapters.node_facts import this_node
from orchestrator.adapters.node_work import NodeWork
from orchestrator.adapters.ray_cluster.agent import AgentOf, Measuring, RemoteWork, start_agent
from orchestrator.errors import ModelUnavailable
from orchestrator.plan.facts import NodeFacts

_HEAD = "node:__internal_head__"
_ACCELERATOR_LABEL = "ray.io/accelerator-type"
_ACCELERATOR_RESOURCE = "accelerator_type:"


@dataclass
class ClusterNodes:
    """What was found, and how to reach it."""

    facts: tuple[NodeFacts, ...]
    here: str
    """The driver's node."""
    head: str
    agents: dict[str, AgentOf] = field(default_factory=dict)
    """By node id; none for the driver's own."""

    def work(self, node_id: str) -> NodeWork:
        agent = self.agents.get(node_id)
        return NodeWork() if agent is None else RemoteWork(agent)

    def is_head(self, node_id: str) -> bool:
        return node_id == self.head

    def measured_from(self, node_id: str) -> str | None:
        """As `Endpoint.node` says it."""
        return None if node_id == self.here else node_id

    def refuse_missing(self, paths: Mapping[str, Path], nodes: Iterable[str]) -> None:
        """Raises: ModelUnavailable when a model's folder is not on every node of an engine."""
        lacking = [
            f"{name} ({path}) is not on node {self._address(node)}"
            for node in dict.fromkeys(nodes)
            for name, path in paths.items()
            if not self.work(node).has(path)
        ]
        if lacking:
            raise ModelUnavailable(
                "\n".join(lacking)
                + "\nEngines read a model on their own node: put models on a folder that every "
                "node sees (ORCHESTRATOR_CACHE, HF_HOME), or prepare them on each"
            )

    def _address(self, node_id: str) -> str:
        for node in ray.nodes():
            if node["NodeID"] == node_id:
                return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
        return node_id

    def close(self) -> None:
        for agent in self.agents.values():
            agent.end()
        self.agents.clear()


def find_nodes(make_measuring: Callable[[], Measuring]) -> ClusterNodes:
    """Every node that is alive, asked for what it has. Ray must be connected already."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    here = ray.get_runtime_context().get_node_id()
    head = next((n["NodeID"] for n in alive if _HEAD in n["Resources"]), here)
    agents = {
        node["NodeID"]: AgentOf(node["NodeID"], start_agent(node["NodeID"], make_measuring))
        for node in alive
        if node["NodeID"] != here
    }
    facts = []
    for node in alive:
        given: dict[str, Any] = {
            "cpus": float(node["Resources"].get("CPU", 0.0)),
            "gpus": float(node["Resources"].get("GPU", 0.0)),
            "model": _named(node),
            "is_head": node["NodeID"] == head and len(alive) > 1,
        }
        agent = agents.get(node["NodeID"])
        facts.append(
            this_node(node["NodeID"], **given)
            if agent is None
            else agent.ask("facts", node["NodeID"], **given)
        )
    return ClusterNodes(tuple(facts), here, head, agents)


def _named(node: Mapping[str, Any]) -> str | None:
    """The kind of accelerator as Ray found it, or was told."""
    label = (node.get("Labels") or {}).get(_ACCELERATOR_LABEL)
    if label:
        return str(label)
    for name in node["Resources"]:
        if name.startswith(_ACCELERATOR_RESOURCE):
            return str(name.removeprefix(_ACCELERATOR_RESOURCE))
    return None
